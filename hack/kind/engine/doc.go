// Package engine provides a Docker engine. One that answers is used as it is;
// else Debian's is installed and started by hand, which needs root but no
// service manager. Its data and its log are in the user's cache directory, and
// it goes on running after the program that started it.
//
// On a machine whose bounding set lacks capabilities an ordinary runc cannot
// start privileged containers, because it asks for all of them. There the
// engine is started with boundedrunc in front of runc.
package engine

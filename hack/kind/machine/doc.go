// Package machine finds out whether this machine can run a cluster of containers:
// its capabilities, missing parts and their cure, the cache of things built once,
// and the installation of Debian packages.
package machine

// Package machine knows what this machine can do for a cluster of containers:
// its capabilities, what it lacks and the cure, where it keeps what is built
// once, and how it installs what Debian packages.
package machine

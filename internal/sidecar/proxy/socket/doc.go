// Package socket reads from and writes to the sockets of connections that carry many small
// messages.
//
// A system call of package net is announced to the scheduler of Go, which watches how long it takes
// and starts another thread where that is more than some 20 µs. A call on a socket that never waits
// needs none of this, and on a busy machine it is a tenth of what a proxy takes of the processors.
// So the calls of this package are not announced. They end at once: the goroutine waits for the
// socket as those of package net do, with the same deadlines.
package socket

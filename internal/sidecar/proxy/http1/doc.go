// Package http1 serves HTTP/1.1 in front of an app that speaks it too.
//
// A connection of a client has one goroutine, which reads the head of a request, has it decided,
// writes it to the app, and passes the answer on. A second one sends a body that has not all come
// with its head, so that both may go on at once. Another one looks after a client that waits for
// longer than some milliseconds, and may leave. A connection that is idle for a second has no
// goroutine and no buffer: it waits in an epoll set.
//
// Heads are checked to the letter of RFC 9112 before anything of them is passed on; see package
// framing. Bodies are passed on part by part, and those in chunks are framed again.
package http1

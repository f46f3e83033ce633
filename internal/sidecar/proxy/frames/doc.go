// Package frames serves HTTP/2 in front of an app that speaks it too. It passes frames on.
//
// A connection of a client has connections of its own to the app: one, and more while the app
// takes fewer streams over one than the client has open. Header blocks are decoded, to decide
// about requests, and encoded again. Each direction of each connection has windows of its own, so
// that a stream whose receiver is slow holds up no other.
//
// One mutex guards all that belongs to a connection of a client. A goroutine reads from the client
// and one from each connection to the app. Each of them sends what it has caused to be sent once
// it has handled all that has arrived, and nobody else is sending on that connection. A stream
// has a goroutine only while it is decided about.
//
// A server may also answer unary calls of gRPC itself. A call that can be answered at once is
// answered by the goroutine that reads from the client, and any other one by a goroutine that
// waits for the answer.
package frames

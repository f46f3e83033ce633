// Package exchange draws exchanges of HTTP/1.1 from seeds: requests of one connection, the
// answers of an app, how either side splits them into writes, and where it ends the
// connection. It plays both sides of an exchange, with an app directly or through a proxy,
// and compares what the two runs show to either side.
//
// Client and app are of one process. So each can wait until the other has seen what it sent,
// and the outcome does not depend on a race between them.
package exchange

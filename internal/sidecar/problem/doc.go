// Package problem writes answers that refuse a request: RFC 9457 bodies for
// HTTP clients, a status for gRPC clients.
package problem

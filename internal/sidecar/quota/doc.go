// Package quota writes what a limit has left, and when to come back, as fields of a
// response: those of the IETF draft "RateLimit header fields for HTTP", X-RateLimit
// ones, and Retry-After, as the limit's policy says.
package quota

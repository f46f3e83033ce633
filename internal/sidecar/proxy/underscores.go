package proxy

import (
	"net/http"
	"strings"
)

// Underscores is what becomes of header fields with underscores in their names. Servers that
// hand fields to programs as variables (RFC 3875, section 4.1.18) take X_User for X-User, so that
// a client could write a field that a proxy in front of the app believes it has set.
type Underscores string

// The choices. Metadata of gRPC passes in any case: its servers keep names apart.
const (
	DropUnderscores   Underscores = "drop"   // the app does not see them
	PassUnderscores   Underscores = "pass"   // the app sees them
	RefuseUnderscores Underscores = "refuse" // the request is answered with 400
)

// Valid reports whether u is one of the constants.
func (u Underscores) Valid() bool {
	return u == DropUnderscores || u == PassUnderscores || u == RefuseUnderscores
}

// passes reports whether fields of r with underscores pass.
func (u Underscores) passes(r *http.Request) bool { return u == PassUnderscores || isGRPC(r) }

// isGRPC reports whether r is a call of gRPC. Nothing else is taken for one, as a client chooses
// its Content-Type: an app that speaks HTTP/2 keeps names apart, as far as is known.
func isGRPC(r *http.Request) bool {
	kind := r.Header["Content-Type"]
	return r.ProtoMajor == 2 && len(kind) == 1 && strings.HasPrefix(kind[0], "application/grpc")
}

// hasUnderscores reports whether a name has an underscore.
func hasUnderscores(h http.Header) bool {
	for name := range h {
		if strings.IndexByte(name, '_') >= 0 {
			return true
		}
	}
	return false
}

// withoutUnderscores removes fields with underscores in their names, and returns how many.
func withoutUnderscores(h http.Header) (n int) {
	for name := range h {
		if strings.IndexByte(name, '_') >= 0 {
			delete(h, name)
			n++
		}
	}
	return n
}

package policy

import "net/http"

// A Request is what limits judge: an HTTP request, or the descriptor that somebody
// asks about on behalf of one. It belongs to one goroutine.
type Request struct {
	http    *http.Request // nil for a descriptor
	path    string
	entries []Entry // of a descriptor
	facts   *facts  // nil until a limit asks for more
}

// NewRequest returns the view limits have of r. Paths are compared decoded and
// without dot segments and repeated slashes, so that no other spelling of a path
// escapes a limit or opens a second counter.
func NewRequest(r *http.Request) Request {
	return Request{http: r, path: cleanPath(r.URL.Path)}
}

// An Entry is one pair of a descriptor.
type Entry struct{ Key, Value string }

// NewDescriptor returns the view limits have of a descriptor, such as a call of
// Envoy's rate limit service carries. Only Match.Descriptors match it, and a limit
// without a match applies to it. Of keys it has the parts of type DescriptorKey; it
// lacks every other. Of entries with the same key the first counts. The request keeps
// entries.
func NewDescriptor(entries []Entry) Request {
	return Request{entries: entries}
}

// value returns the value of the first entry with that key. An HTTP request has none.
func (r *Request) value(key string) (string, bool) {
	for i := range r.entries {
		if r.entries[i].Key == key {
			return r.entries[i].Value, true
		}
	}
	return "", false
}

// entry returns what a descriptor has for a part of a key, empty when it lacks it.
func (r *Request) entry(p KeyPart) string {
	if p.Type != DescriptorKey {
		return ""
	}
	value, _ := r.value(p.Name)
	return value
}

// matchesDescriptor reports whether r is a descriptor and m is of one and matches it.
func (m *matcher) matchesDescriptor(r *Request) bool {
	if r.http != nil || len(m.descriptors) == 0 {
		return false
	}
	for i := range m.descriptors {
		value, ok := r.value(m.descriptors[i].Key)
		if !ok || m.descriptors[i].Value != "" && m.descriptors[i].Value != value {
			return false
		}
	}
	return true
}

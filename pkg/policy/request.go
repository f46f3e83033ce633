package policy

import (
	"iter"
	"net/http"
	"strings"
)

// A Request is what limits judge: an HTTP request, or the descriptor that somebody
// asks about on behalf of one. It belongs to one goroutine.
type Request struct {
	http    *http.Request // nil for a descriptor
	path    string        // decoded and clean, the one that counts in keys
	entries []Entry       // of a descriptor
	facts   *facts        // nil until a limit asks for more
	others  []string      // readings of the path, nil until a limit asks for them
}

// NewRequest returns the view limits have of r. Keys have its path decoded and without
// dot segments and repeated slashes, so that these open no second counter. So that no
// spelling escapes a limit, or is exempt from one, paths are compared in every way that
// an app may read them: as they were sent, and as decoding them, dropping the parameters
// of segments, repeated slashes and dot segments leaves them, in any order.
func NewRequest(r *http.Request) Request {
	return Request{http: r, path: cleanPath(r.URL.Path)}
}

// otherReadings returns what an app may take the path for besides r.path. It does not
// allocate where there is nothing else, as with almost all requests.
func (r *Request) otherReadings() []string {
	if r.others != nil || r.http == nil {
		return r.others
	}
	r.others = []string{}
	if u := r.http.URL; u.RawPath != "" || u.Path != r.path || !isPlain(u.Path) {
		r.others = readings(sentPath(u))
	}
	return r.others
}

// An Entry is one pair of a descriptor.
type Entry struct{ Key, Value string }

// NewDescriptor returns the view limits have of a descriptor, such as a call of
// Envoy's rate limit service carries. Only Match.Descriptors match it, and a limit
// without a match applies to it. It has the parts of keys of type DescriptorKey, and
// lacks every other. The first of several entries with the same key counts. The
// request keeps entries.
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

// facts are what is read of an HTTP request once, and only when a limit asks for it.
type facts struct {
	http    *http.Request
	tokens  []token // parsed so far
	headers map[string]string
	query   map[string]string
}

// known returns the facts of an HTTP request.
func (r *Request) known() *facts {
	if r.facts == nil {
		r.facts = &facts{http: r.http}
	}
	return r.facts
}

// headerMap returns the headers by their names in lower case; the values of one that
// is sent several times are joined by commas, as RFC 9110, section 5.3, reads them.
func (f *facts) headerMap() map[string]string {
	if f.headers == nil {
		f.headers = make(map[string]string, len(f.http.Header)+1)
		for name, values := range f.http.Header {
			f.headers[strings.ToLower(name)] = strings.Join(values, ", ")
		}
		f.headers["host"] = f.http.Host
	}
	return f.headers
}

// queryMap returns the first value of each parameter.
func (f *facts) queryMap() map[string]string {
	if f.query == nil {
		f.query = make(map[string]string)
		for name, value := range parameters(f.http.URL.RawQuery) {
			if _, ok := f.query[name]; !ok {
				f.query[name] = value
			}
		}
	}
	return f.query
}

// parameters yields the parameters of a query, decoded, in their order, as the URL
// Standard reads forms (application/x-www-form-urlencoded parsing): a percent sign that
// begins no escape stays. An app that reads fewer refuses what it is sent.
func parameters(query string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for pair := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(pair, "=")
			if pair != "" && !yield(unescape(name), unescape(value)) {
				return
			}
		}
	}
}

func unescape(s string) string { return decode(strings.ReplaceAll(s, "+", " ")) }

// A namedMatcher compares the values of a parameter or a claim.
type namedMatcher struct {
	valueMatcher

	name string
}

func compileQuery(q QueryMatch) (namedMatcher, error) {
	value, err := compileValue(q.Type, q.Value)
	return namedMatcher{value, q.Name}, err
}

// matchesQuery reports whether one of the parameter's values matches.
func (m *namedMatcher) matchesQuery(query string) bool {
	for name, value := range parameters(query) {
		if name == m.name && m.valueMatcher.matches(value) {
			return true
		}
	}
	return false
}

// parameter returns the first value of a parameter, empty when the query lacks it, and
// whether it has others that differ.
func parameter(query, wanted string) (first string, others bool) {
	found := false
	for name, value := range parameters(query) {
		switch {
		case name != wanted:
		case !found:
			first, found = value, true
		case value != first:
			return first, true
		}
	}
	return first, false
}

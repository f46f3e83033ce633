package policy

import (
	"net/http"
	"strings"
)

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

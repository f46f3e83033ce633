package exchange

import (
	"net/textproto"
	"slices"
	"strings"
)

// OfOneConnection are fields that end at a proxy.
var OfOneConnection = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings",
}

// forwarded returns the fields that the app is to see of a request that it sees directly with
// these, by docs/proxy.md, sorted by name. Those that frame the body are not among them: see
// the body.
func forwarded(m *Message, app string) []string {
	var out []field
	for _, f := range m.Fields {
		name := textproto.CanonicalMIMEHeaderKey(f.Name)
		switch {
		case slices.Contains(OfOneConnection, name), strings.Contains(name, "_"), strings.HasPrefix(name, "X-Weir-"),
			name == "Content-Length", name == "Host", name == "X-Forwarded-For":
		default:
			out = append(out, line(name, f.Value))
		}
	}
	host := strings.Join(m.values("Host"), "")
	if _, rest, absolute := strings.Cut(m.word(1), "://"); absolute && m.word(1)[0] != '/' {
		end := strings.IndexAny(rest+"/", "/?")
		host = rest[:end]
	}
	if host == "" {
		host = app
	}
	out = append(out, line("Host", host), line("X-Forwarded-For", strings.Join(append(m.values("X-Forwarded-For"), "127.0.0.1"), ", ")))
	if strings.Contains(strings.Join(m.values("Te"), ","), "trailers") {
		out = append(out, line("Te", "trailers"))
	}
	return sorted(out)
}

// sorted returns fields by their canonical names. Those of one name keep their order.
func sorted(all []field) []string {
	all = slices.Clone(all)
	for i := range all {
		all[i].Name = textproto.CanonicalMIMEHeaderKey(all[i].Name)
	}
	slices.SortStableFunc(all, func(a, b field) int { return strings.Compare(a.Name, b.Name) })
	var out []string
	for _, f := range all {
		out = append(out, f.Name+": "+f.Value)
	}
	return out
}

// without returns the fields that have none of the names.
func without(all []field, names ...string) []field {
	return slices.DeleteFunc(slices.Clone(all), func(f field) bool {
		return slices.Contains(names, textproto.CanonicalMIMEHeaderKey(f.Name))
	})
}

// origin returns a request line with its target in origin form, and the version that the app
// is spoken to in.
func origin(start string) string {
	method, rest, _ := strings.Cut(start, " ")
	target, _, _ := strings.Cut(rest, " ")
	if _, behind, absolute := strings.Cut(target, "://"); absolute && target[0] != '/' {
		target = behind[strings.IndexByte(behind, '/'):]
	}
	return method + " " + target + " HTTP/1.1"
}

// passed returns the trailer that the app is to see.
func passed(trailer []field) []string {
	return sorted(slices.DeleteFunc(slices.Clone(trailer), func(f field) bool {
		return strings.Contains(f.Name, "_") || strings.HasPrefix(textproto.CanonicalMIMEHeaderKey(f.Name), "X-Weir-")
	}))
}

// relayed returns the fields that the client is to see of an answer that it sees directly
// with these.
func relayed(m *Message) []string {
	return sorted(without(m.Fields, append([]string{"Content-Length"}, OfOneConnection...)...))
}

// length is what a message says of its length: a number, or nothing.
func (m *Message) length() string { return strings.Join(m.values("Content-Length"), ",") }

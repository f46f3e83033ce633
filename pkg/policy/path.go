package policy

import (
	"encoding/hex"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

type pathMatcher struct {
	kind    MatchType
	value   string
	pattern *regexp.Regexp
}

func compilePath(p PathMatch) (m pathMatcher, err error) {
	m.kind = p.Type
	switch p.Type {
	case RegularExpression:
		m.pattern, err = compilePattern(p.Value)
	case PathPrefix:
		m.value = strings.TrimRight(cleanPath(p.Value), "/")
	default:
		m.value = cleanPath(p.Value)
	}
	return m, err
}

func (m *pathMatcher) matches(path string) bool {
	switch m.kind {
	case RegularExpression:
		return m.pattern.MatchString(path)
	case PathPrefix:
		rest, ok := strings.CutPrefix(path, m.value)
		return ok && (rest == "" || rest[0] == '/')
	default:
		return path == m.value
	}
}

// path returns what compares the paths of the calls.
func (g *GRPCMatch) path() *pathMatcher {
	if g.Method == "" {
		return &pathMatcher{kind: PathPrefix, value: "/" + g.Service}
	}
	return &pathMatcher{kind: Exact, value: "/" + g.Service + "/" + g.Method}
}

// cleanPath returns p rooted, without dot segments and repeated slashes, and
// with its trailing slash if it had one. It does not allocate when p is clean.
func cleanPath(p string) string {
	if isClean(p) {
		return p
	}
	clean := path.Clean("/" + p)
	if clean != "/" && (strings.HasSuffix(p, "/") || endsInDots(p)) {
		clean += "/"
	}
	return clean
}

// endsInDots reports whether the last segment of p is a dot segment.
func endsInDots(p string) bool {
	return strings.HasSuffix(p, "/.") || strings.HasSuffix(p, "/..")
}

func isClean(p string) bool {
	if p == "" || p[0] != '/' {
		return false
	}
	for i := 0; i+1 < len(p); i++ {
		if p[i] == '/' && (p[i+1] == '/' || p[i+1] == '.') {
			return false
		}
	}
	return true
}

// A reading is a path as an app may understand it. Apps get paths byte for byte and
// differ in what they make of them: one decodes and resolves dot segments, another
// compares what was sent, a third drops the parameters of segments. A match that lifts
// a limit has to hold in all readings, and one that sets a limit in any.

// steps are what apps make of a path. They do so in any order, and some more than once:
// the next router reads again what a gateway or a mount point has read.
var steps = [...]func(string) string{decode, withoutParams, withoutBackslashes, withoutEmpty, withoutDots}

// Bounds of what a client can make us compare: paths that people write have a handful of
// readings, and all of them are no longer than the longest header of a request.
const (
	maxReadings     = 16
	maxReadingBytes = 32 << 10
)

// unreadable stands for the readings of a path that has more. No path is empty.
const unreadable = ""

// readings returns what an app may take a path for that was sent so.
func readings(sent string) []string {
	if !strings.HasPrefix(sent, "/") {
		sent = "/" + sent
	}
	all, size := []string{sent}, len(sent)
	for i := 0; i < len(all); i++ {
		for _, step := range steps {
			next := step(all[i])
			if slices.Contains(all, next) {
				continue
			}
			if size += len(next); len(all) == maxReadings || size > maxReadingBytes {
				return []string{unreadable}
			}
			all = append(all, next)
		}
	}
	return all
}

// sentPath returns the path of a URL as it was sent. net/url keeps the spelling where it
// is not its own; EscapedPath alone would write some of those again.
func sentPath(u *url.URL) string {
	if u.RawPath != "" {
		return u.RawPath
	}
	return u.EscapedPath()
}

// isPlain reports whether a path that net/url decoded was sent so, without parameters.
func isPlain(p string) bool {
	for i := range len(p) {
		if !plain[p[i]] {
			return false
		}
	}
	return true
}

// plain are the bytes of a path that net/url writes as they are, but for the semicolon.
var plain = func() (set [256]bool) {
	for _, c := range []byte("/-._~$&+,:=@0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") {
		set[c] = true
	}
	return set
}()

// decode returns p with its escapes decoded. A percent sign that begins none stays, and
// stops nothing: apps that refuse such a path do no harm, and others read on.
func decode(p string) string {
	if strings.IndexByte(p, '%') < 0 {
		return p
	}
	var b strings.Builder
	for {
		kept, rest, found := strings.Cut(p, "%")
		b.WriteString(kept)
		if !found {
			return b.String()
		}
		var octet [1]byte
		if n, err := hex.Decode(octet[:], []byte(rest[:min(2, len(rest))])); err == nil && n == 1 {
			b.WriteByte(octet[0])
			p = rest[2:]
		} else {
			b.WriteByte('%')
			p = rest
		}
	}
}

// withoutParams returns p without the parameters of its segments, which servlet
// containers take for no part of them: /login;jsessionid=1 is /login there.
func withoutParams(p string) string {
	if strings.IndexByte(p, ';') < 0 {
		return p
	}
	var b strings.Builder
	for {
		kept, params, _ := strings.Cut(p, ";")
		b.WriteString(kept)
		end := strings.IndexByte(params, '/')
		if end < 0 {
			return b.String()
		}
		p = params[end:]
	}
}

// withoutBackslashes returns p with slashes in their place, as the URL Standard has it and
// servers that map paths to Windows' files.
func withoutBackslashes(p string) string { return strings.ReplaceAll(p, `\`, "/") }

// withoutEmpty returns p with repeated slashes as one.
func withoutEmpty(p string) string {
	if !strings.Contains(p, "//") {
		return p
	}
	var b strings.Builder
	for i := range len(p) {
		if p[i] != '/' || i == 0 || p[i-1] != '/' {
			b.WriteByte(p[i])
		}
	}
	return b.String()
}

// withoutDots returns p without dot segments by RFC 3986, section 5.2.4, which unlike
// cleanPath takes what is between two slashes for a segment.
func withoutDots(p string) string {
	if !strings.Contains(p, "/.") {
		return p
	}
	kept := []string{""} // in front of the root
	for segment := range strings.SplitSeq(p[1:], "/") {
		switch {
		case segment == ".." && len(kept) > 1:
			kept = kept[:len(kept)-1]
		case segment != "." && segment != "..":
			kept = append(kept, segment)
		}
	}
	if endsInDots(p) {
		kept = append(kept, "")
	}
	return strings.Join(kept, "/")
}

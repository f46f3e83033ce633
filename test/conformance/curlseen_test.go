package conformance

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/test/conformance/exchange"
)

// A sight is a request as an app saw it.
type sight struct {
	method, target, host string
	major, minor         int
	fields, trailer      http.Header
	length               int64  // announced, -1 in chunks
	body                 string // its sum, empty when the app did not read it
	end                  string // why it ended otherwise than by an answer
}

func sightOf(r *http.Request) sight {
	fields := r.Header.Clone()
	fields.Del("Content-Length") // the length says it
	return sight{method: r.Method, target: r.RequestURI, host: r.Host, major: r.ProtoMajor, minor: r.ProtoMinor, fields: fields, length: r.ContentLength}
}

// take reads the body.
func (s *sight) take(r *http.Request) {
	s.body = sum(r.Body)
	s.trailer = r.Trailer
}

// await waits for the other side.
func (s *sight) await(ctx context.Context, other <-chan struct{}) {
	select {
	case <-other:
	case <-ctx.Done():
		s.end = "its client left"
	case <-time.After(patience):
		s.end = "the other side waits for more"
	}
}

// sum says what a body is.
func sum(body io.Reader) string {
	all := sha256.New()
	n, err := io.Copy(all, body)
	if err != nil {
		return "cut" // after a number of bytes that varies
	}
	return fmt.Sprintf("%d bytes %x", n, all.Sum(nil)[:8])
}

// String writes all of it, in an order that does not depend on how it came.
func (s sight) String() string {
	line := fmt.Sprintf("%s %s of %q by HTTP/%d.%d, length %d, body %q, end %q", s.method, s.target, s.host, s.major, s.minor, s.length, s.body, s.end)
	for _, part := range []http.Header{s.fields, s.trailer} {
		for _, name := range slices.Sorted(maps.Keys(part)) {
			line += fmt.Sprintf("\n    %s: %q", name, part[name])
		}
		line += "\n    --"
	}
	return line
}

// forwarded returns what an app is to see through a proxy of a request that it sees directly so, by
// docs/proxy.md. The request is addressed to at instead of to the app.
func (s sight) forwarded(direct, app, at string, ours bool) sight {
	fields := http.Header{}
	upgrade := strings.EqualFold(strings.Join(s.fields["Upgrade"], ", "), "websocket")
	for name, values := range s.fields {
		if !slices.Contains(exchange.OfOneConnection, name) && !strings.Contains(name, "_") && !strings.HasPrefix(name, "X-Weir-") {
			fields[name] = values
		}
	}
	if strings.Contains(strings.Join(s.fields["Te"], ","), "trailers") {
		fields["Te"] = []string{"trailers"}
	}
	if upgrade {
		fields["Connection"], fields["Upgrade"] = []string{"Upgrade"}, s.fields["Upgrade"]
	}
	delete(fields, "X-Forwarded-For")
	if ours {
		fields["X-Forwarded-For"] = []string{strings.Join(append(slices.Clip(s.fields["X-Forwarded-For"]), "127.0.0.1"), ", ")}
	}
	out := s
	out.fields = fields
	if s.major == 1 {
		out.minor = 1
	}
	if _, rest, absolute := strings.Cut(s.target, "://"); absolute && s.target[0] != '/' {
		at := strings.IndexAny(rest+"/", "/?")
		out.host, out.target = rest[:at], rest[at:]
	}
	switch out.host {
	case "":
		out.host = app
	case direct:
		out.host = at
	}
	return out
}

// An outcome is what a command did.
type outcome struct {
	exit     int
	answers  []header // those that are informational as well, and trailers
	body     string   // all that was printed
	connects string   // connections that were opened for each transfer
	file     string   // the sum of the file that a transfer goes on with
	seen     []sight
}

// A header is the head of an answer as curl notes it, or a trailer.
type header struct {
	code   string // empty of a trailer
	fields http.Header
}

// codes are the statuses.
func (o outcome) codes() string {
	var all []string
	for _, h := range o.answers {
		if h.code != "" {
			all = append(all, h.code)
		}
	}
	return strings.Join(all, " ")
}

// readHeaders reads what curl writes for --dump-header.
func readHeaders(text string) []header {
	var all []header
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\r\n\r\n") {
		h := header{fields: http.Header{}}
		for line := range strings.SplitSeq(strings.TrimSpace(block), "\r\n") {
			if first, rest, ok := strings.Cut(line, " "); ok && strings.HasPrefix(first, "HTTP/") {
				h.code, _, _ = strings.Cut(rest, " ")
				continue
			}
			if name, value, ok := strings.Cut(line, ":"); ok {
				h.fields.Add(textproto.TrimString(name), textproto.TrimString(value))
			}
		}
		if h.code != "" || len(h.fields) > 0 {
			all = append(all, h)
		}
	}
	return all
}

// relayed returns an answer that a client gets through a proxy, by docs/proxy.md: it says its
// length where the app's answer does. A sidecar adds what is left of a limit.
func (h header) relayed(direct header, ours bool) string {
	names := slices.Sorted(maps.Keys(h.fields))
	line := h.code
	for _, name := range names {
		ends := slices.Contains(exchange.OfOneConnection, name) || name == "Date" || name == "Content-Length" && direct.fields[name] == nil ||
			ours && strings.HasPrefix(name, "Ratelimit")
		if !ends {
			line += fmt.Sprintf("\n    %s: %q", name, h.fields[name])
		}
	}
	return line
}

// withoutOwn returns answers without the 100 Continue that a sidecar sends itself, beside the
// app's or after a second without one.
func withoutOwn(answers []header, apps bool) []header {
	return slices.DeleteFunc(answers, func(h header) bool {
		own := h.code == "100" && !apps
		apps = apps && h.code != "100"
		return own
	})
}

// differences returns how a command fared otherwise through a proxy than with its app directly.
func (c *command) differences(direct, through outcome, app string, at, to target) []string {
	var all []string
	equal := func(what string, want, got any) {
		if w, g := fmt.Sprint(want), fmt.Sprint(got); w != g {
			all = append(all, fmt.Sprintf("%s: got %.900s\n  want %.900s", what, g, w))
		}
	}
	if to.isOurs() {
		through.answers = withoutOwn(through.answers, strings.Contains(direct.codes(), "100"))
	}
	equal("the exit code", direct.exit, through.exit)
	equal("the statuses", direct.codes(), through.codes())
	if !c.unordered {
		equal("the connections", direct.connects, through.connects)
	}
	equal("the file", direct.file, through.file)
	if !c.aborts {
		equal("what is printed", direct.body, through.body)
	}
	equal("the answers", len(direct.answers), len(through.answers))
	for i := range min(len(direct.answers), len(through.answers)) {
		equal("an answer", direct.answers[i].relayed(direct.answers[i], false), through.answers[i].relayed(direct.answers[i], to.isOurs()))
	}
	equal("the requests at the app", len(direct.seen), len(through.seen))
	var want, got []string
	for _, s := range direct.seen {
		want = append(want, s.forwarded(at.address, app, to.address, to.isOurs()).String())
	}
	for _, s := range through.seen {
		if !to.isOurs() {
			delete(s.fields, "X-Forwarded-For")
		}
		got = append(got, s.String())
	}
	if c.unordered {
		slices.Sort(want)
		slices.Sort(got)
	}
	for i := range min(len(want), len(got)) {
		equal("a request at the app", want[i], got[i])
	}
	return all
}

package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/proxy/framing/framingtest"
	"github.com/weir-dev/weir/test/conformance/exchange"
)

// TestMalformed sends each row over a connection of its own, and judges the answers and the
// requests that reach the app.
func TestMalformed(t *testing.T) {
	var apps []*framingtest.App
	start := func() string {
		app, err := framingtest.Listen()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(app.Close)
		apps = append(apps, app)
		return app.Address()
	}
	ready := row{name: "ready", sent: get("/"), passes: 1}
	all := rows()
	for i, at := range inFrontOf(t, proxyHTTP1, start, func(address string) error {
		got, err := ready.ask(t.Context(), address, true)
		if err == nil && !slices.Equal(got.of, []int{http.StatusNoContent}) {
			return fmt.Errorf("it answers %d", got.of)
		}
		return err
	}) {
		app := apps[i]
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			app.Take()
			passed, smuggled := 0, 0
			var differs []string
			for _, r := range all {
				got, err := r.ask(t.Context(), at.address, at.isOurs() || r.status == 0)
				seen := app.Take()
				if err == nil {
					err = r.judge(got, seen, at, app.Address())
				}
				if len(seen.Requests) > r.passes {
					smuggled++
				}
				switch {
				case err == nil:
					passed++
				case at.isOurs():
					t.Errorf("%s: %v\nsent: %.300q%.100q\nanswered with %v\nthe app saw %+.500v", r.name, err, r.sent, r.early, got, seen)
				default:
					differs = append(differs, r.name)
				}
			}
			note("malformed and ambiguous requests of HTTP/1.1", at.name, passed, len(all))
			t.Logf("%d of %d; of %d more requests reach the app than there are; others: %q", passed, len(all), smuggled, differs)
		})
	}
}

// replies are those to a row.
type replies struct {
	of     []int  // their status codes
	tunnel string // bytes that came through it
	last   string // how the connection ended, empty when it was closed between answers
}

// ask sends a row and reads until the connection is closed. A client that waits closes its side
// when it has all answers; others close it as soon as all is sent.
func (r row) ask(ctx context.Context, address string, waits bool) (got replies, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return got, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(conn, r.sent+r.early) // the peer need not read a refused row to its end
	}()
	closeSide := func() {
		<-sent
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	if (!waits || r.cut) && r.early == "" {
		closeSide()
	}
	in := bufio.NewReader(conn)
	for {
		if waits && len(got.of) == r.passes && r.status == 0 && r.early == "" {
			closeSide()
		}
		res, err := http.ReadResponse(in, &http.Request{Method: r.method()})
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				got.last = err.Error()
			}
			if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
				return got, errors.New("it neither answers nor closes the connection")
			}
			return got, nil
		}
		if res.StatusCode == http.StatusSwitchingProtocols {
			got.of = append(got.of, res.StatusCode)
			got.tunnel, err = through(in, len(r.early), closeSide)
			return got, err
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode >= http.StatusOK {
			got.of = append(got.of, res.StatusCode)
		}
	}
}

// through reads most bytes from a tunnel, closes a side of it, and reads the rest.
func through(in io.Reader, most int, closeSide func()) (string, error) {
	first := make([]byte, most)
	if n, err := io.ReadFull(in, first); err != nil {
		return string(first[:n]), fmt.Errorf("of %d bytes %d come back through the tunnel: %w", most, n, err)
	}
	closeSide()
	rest, err := io.ReadAll(in)
	return string(first) + string(rest), err
}

// judge returns an error when the answers or the requests at the app are not those that the row
// names.
func (r row) judge(got replies, seen framingtest.Seen, at target, app string) error {
	strictly, _ := framingtest.ReadAll([]byte(r.sent))
	switch {
	case len(seen.Requests) != r.passes:
		return fmt.Errorf("%d requests reach the app, want %d", len(seen.Requests), r.passes)
	case len(strictly) < r.passes:
		return fmt.Errorf("by the letter these are %d requests", len(strictly))
	case seen.Tunnel != r.early || got.tunnel != r.early:
		return fmt.Errorf("%d bytes go into the tunnel and %d come back, want %d", len(seen.Tunnel), len(got.tunnel), len(r.early))
	}
	for i := range seen.Requests {
		if !seen.Requests[i].IsForwarded(&strictly[i]) {
			return fmt.Errorf("request %d is another one", i+1)
		}
		if want, has := forwarded(&strictly[i], app), fields(&seen.Requests[i]); at.isOurs() && !slices.Equal(has, want) {
			return fmt.Errorf("request %d has\n%q, want\n%q", i+1, has, want)
		}
	}
	refused := len(got.of) > r.passes && got.of[r.passes] >= http.StatusBadRequest
	switch {
	case !at.isOurs():
		if closed := len(got.of) == r.passes; r.status != 0 && !refused && !closed || r.status == 0 && len(got.of) != r.passes {
			return fmt.Errorf("it is answered with %d", got.of)
		}
	case seen.Broken != "":
		return fmt.Errorf("the app was sent what is malformed: %q", seen.Broken)
	case r.cut && len(got.of) == r.passes: // a client that has left need not be answered
	case r.status == 0 && len(got.of) != r.passes, r.status != 0 && (len(got.of) != r.passes+1 || got.of[r.passes] != r.status):
		return fmt.Errorf("it is answered with %d, want %d answers of the app and then %d", got.of, r.passes, r.status)
	}
	return nil
}

// method is that of the first request, by which an answer to HEAD is read.
func (r row) method() string {
	if strings.HasPrefix(r.sent, http.MethodHead+" ") {
		return http.MethodHead
	}
	return http.MethodGet
}

// fields are those of a request by name. Those of one name keep their order.
func fields(m *framingtest.Message) []string {
	var all []string
	for _, f := range m.Fields {
		all = append(all, textproto.CanonicalMIMEHeaderKey(f.Name)+": "+f.Value)
	}
	slices.SortStableFunc(all, func(a, b string) int {
		nameA, _, _ := strings.Cut(a, ":")
		nameB, _, _ := strings.Cut(b, ":")
		return strings.Compare(nameA, nameB)
	})
	return all
}

// forwarded are the fields that the app is to see of a request, by docs/proxy.md.
func forwarded(m *framingtest.Message, app string) []string {
	out := framingtest.Message{}
	add := func(name, value string) { out.Fields = append(out.Fields, framingtest.Field{Name: name, Value: value}) }
	upgrade := strings.EqualFold(strings.Join(m.Values("Upgrade"), ", "), "websocket") && strings.Contains(strings.ToLower(strings.Join(m.Values("Connection"), ",")), "upgrade")
	sends := m.Method == http.MethodPost || m.Method == http.MethodPut || m.Method == http.MethodPatch
	if sends && len(m.Values("Content-Length"))+len(m.Values("Transfer-Encoding")) == 0 {
		add("Content-Length", "0")
	}
	if len(m.Values("Host")) == 0 {
		add("Host", app)
	}
	for _, f := range m.Fields {
		name := textproto.CanonicalMIMEHeaderKey(f.Name)
		switch {
		case slices.Contains(exchange.OfOneConnection, name), strings.Contains(name, "_"), strings.HasPrefix(name, "X-Weir-"):
		case name == "Content-Length" && strings.TrimLeft(f.Value, "0") == "" && !sends:
			// A length of nothing says nothing.
		case name == "Content-Length":
			value := strings.TrimLeft(f.Value, "0")
			if value == "" {
				value = "0"
			}
			add(name, value)
		case name == "Host":
			value := f.Value
			if _, rest, absolute := strings.Cut(m.Target, "://"); absolute && m.Target[0] != '/' {
				value = rest[:len(rest)-len(strings.TrimLeftFunc(rest, func(c rune) bool { return c != '/' && c != '?' }))]
			}
			if value == "" {
				value = app
			}
			add(name, value)
		case name == "X-Forwarded-For":
		default:
			add(name, f.Value)
		}
	}
	add("X-Forwarded-For", strings.Join(append(m.Values("X-Forwarded-For"), "127.0.0.1"), ", "))
	if upgrade {
		add("Connection", "Upgrade")
		add("Upgrade", strings.Join(m.Values("Upgrade"), ", "))
	}
	if len(m.Values("Transfer-Encoding")) > 0 {
		add("Transfer-Encoding", "chunked")
	}
	if trailers := strings.Contains(strings.Join(m.Values("Te"), ","), "trailers"); trailers {
		add("Te", "trailers")
	}
	return fields(&out)
}

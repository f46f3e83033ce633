package trace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
)

func TestTextIsValidAndBounded(t *testing.T) {
	for in, want := range map[string]string{
		"":                                   "",
		"café":                               "café",
		"\xff":                               "?",
		"a\xc3":                              "a?",
		strings.Repeat("a", maxText):         strings.Repeat("a", maxText),
		strings.Repeat("a", maxText+1):       strings.Repeat("a", maxText),
		strings.Repeat("a", maxText-1) + "é": strings.Repeat("a", maxText-1),
		strings.Repeat("a", maxText-3) + "😀": strings.Repeat("a", maxText-3),
	} {
		if got := text(in); got != want {
			t.Errorf("%.20q of %d bytes became %.20q of %d, want %d", in, len(in), got, len(got), len(want))
		}
	}
	if got := text(strings.Repeat("\x80", 2*maxText)); len(got) > maxText || !utf8.ValidString(got) {
		t.Errorf("bytes that begin no character became %d: %.20q", len(got), got)
	}
}

// quotes is a decider that fails and quotes the request.
type quotes struct{ decides }

func (quotes) Decide(_ context.Context, r *http.Request) (enforce.Verdict, error) {
	return enforce.Verdict{}, errors.New("path " + r.URL.Path)
}

// TestNoClientLosesTheTracesOfOthers: what one client sends is not a reason for a collector
// to refuse the spans of all.
func TestNoClientLosesTheTracesOfOthers(t *testing.T) {
	collector := startCollector(t).prompt()
	tracer := newTracer(t, collector.address, silent())
	side := tracer.Decider(quotes{})
	var atApp []string
	server := httptest.NewServer(served(tracer, func(_ http.ResponseWriter, r *http.Request) {
		atApp = append(atApp, r.Header.Get("Tracestate"))
		_, _ = side.Decide(r.Context(), r)
	}))
	defer server.Close()
	state := "a=" + strings.Repeat("x", 250) + ",b=" + strings.Repeat("y", 250) + ",c=" + strings.Repeat("z", 250)
	send(t, server, http.MethodGet, "/good", "a=b")
	send(t, server, http.MethodGet, "/bad%ff", "")
	send(t, server, http.MethodGet, "/raw\xff", "")
	send(t, server, strings.Repeat("M", 4000), "/"+strings.Repeat("p", 4000), state)
	send(t, server, http.MethodGet, "/good2", "")
	server.Close()

	spans := collector.got(t, tracer)
	want := []string{"/good", "/bad%ff", "/raw%FF", "/" + strings.Repeat("p", maxText-1), "/good2"}
	if len(spans) != len(want) {
		t.Fatalf("%d spans arrived, want %d", len(spans), len(want))
	}
	for i, span := range spans {
		got := attributes(span.GetAttributes())
		if got["url.path"] != want[i] {
			t.Errorf("path %.40q, want %.40q", got["url.path"], want[i])
		}
		if n := len(span.String()); n > 4*maxText {
			t.Errorf("the span of %.40q has %d bytes", want[i], n)
		}
		if len(span.GetEvents()) != 1 || attributes(span.GetEvents()[0].GetAttributes())["exception.type"] != "*errors.errorString" {
			t.Errorf("the error is reported as %v", span.GetEvents())
		}
	}
	if got := spans[0].GetTraceState(); got != "a=b" {
		t.Errorf("trace state %q", got)
	}
	if got := spans[3].GetTraceState(); got != "" || atApp[3] != state {
		t.Errorf("of a long trace state the span has %d bytes and the app %d, want 0 and %d", len(got), len(atApp[3]), len(state))
	}
}

// served has net/http serve what is traced.
func served(t *Tracer, f answers) http.Handler {
	h := t.Handler(f)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.Enter(w, r) })
}

// send sends a sampled request with those bytes, which an http.Client would mend.
func send(t *testing.T, server *httptest.Server, method, path, state string) {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if state != "" {
		state = "Tracestate: " + state + "\r\n"
	}
	if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: shop\r\nTraceparent: %s\r\n%sConnection: close\r\n\r\n", method, path, sampled, state); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("%.40q got %s", path, answer.Status)
	}
}

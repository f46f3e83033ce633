package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"testing/synctest"
)

// TestABodyIsReadWhenTheAppsRequestForItWasPassedOn: net/http sends a request of its own when
// the body is read before.
func TestABodyIsReadWhenTheAppsRequestForItWasPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("a"))
		r.Header.Set("Expect", "100-continue")
		body := newInbound(r.Body, httptest.NewRecorder())
		trace := httptrace.ContextClientTrace(body.continues(r).Context())
		trace.Got100Continue()
		var got []byte
		go func() { got, _ = io.ReadAll(body) }()
		synctest.Wait()
		if got != nil {
			t.Fatal("the body is read before the client is asked for it")
		}
		passed := parts{ResponseWriter: httptest.NewRecorder(), request: r, body: body}
		passed.WriteHeader(http.StatusContinue)
		if err := trace.Got1xxResponse(http.StatusContinue, textproto.MIMEHeader{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if string(got) != "a" {
			t.Errorf("read %q", got)
		}
	})
}

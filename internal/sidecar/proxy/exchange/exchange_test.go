package exchange

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// TestWhichRequestsMayBeSeenTwice.
func TestWhichRequestsMayBeSeenTwice(t *testing.T) {
	for name, tc := range map[string]struct {
		method, field string
		want          bool
	}{
		"GET":                {"GET", "", true},
		"HEAD":               {"HEAD", "", true},
		"OPTIONS":            {"OPTIONS", "", true},
		"TRACE":              {"TRACE", "", true},
		"POST":               {"POST", "", false},
		"PUT":                {"PUT", "", false},
		"PATCH":              {"PATCH", "", false},
		"DELETE":             {"DELETE", "", false},
		"lower case":         {"get", "", false},
		"POST with a key":    {"POST", "Idempotency-Key", true},
		"POST with an X-key": {"POST", "X-Idempotency-Key", true},
		"POST with another":  {"POST", "X-Request-Id", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &http.Request{Method: tc.method, Header: http.Header{}}
			if tc.field != "" {
				r.Header[tc.field] = []string{"a"}
			}
			if got := Repeats(r); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// TestARecorderKeepsTheFirstStatus, and 200 where a body comes without one.
func TestARecorderKeepsTheFirstStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		write func(w http.ResponseWriter)
		want  Recorder
	}{
		"nothing":  {func(http.ResponseWriter) {}, Recorder{}},
		"a status": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) }, Recorder{Status: 429}},
		"two": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusTooManyRequests)
			w.WriteHeader(http.StatusInternalServerError)
		}, Recorder{Status: 429}},
		"a body": {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "a"); _, _ = io.WriteString(w, "b") }, Recorder{Status: 200, Body: []byte("ab")}},
		"both": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "a")
		}, Recorder{Status: 503, Body: []byte("a")}},
		"a status behind": {func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, "a")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, Recorder{Status: 200, Body: []byte("a")}},
	} {
		t.Run(name, func(t *testing.T) {
			var w Recorder
			tc.write(&w)
			if w.Status != tc.want.Status || !bytes.Equal(w.Body, tc.want.Body) {
				t.Errorf("got %d %q", w.Status, w.Body)
			}
			if w.Header().Set("A", "b"); w.Header().Get("A") != "b" {
				t.Error("fields are lost")
			}
		})
	}
}

// handled is a handler of one function.
type handled func(w http.ResponseWriter, r *http.Request) Exchange

func (h handled) Enter(w http.ResponseWriter, r *http.Request) Exchange { return h(w, r) }
func (handled) Trailer(*http.Request, http.Header)                      {}

type passes struct{ Exchange }

// TestAPanicEndsTheRequest, and is logged unless it is meant.
func TestAPanicEndsTheRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		enter           handled
		passes, aborted bool
		logged          string
	}{
		"it passes":       {func(http.ResponseWriter, *http.Request) Exchange { return passes{} }, true, false, ""},
		"it is answered":  {func(http.ResponseWriter, *http.Request) Exchange { return nil }, false, false, ""},
		"a meant panic":   {func(http.ResponseWriter, *http.Request) Exchange { panic(http.ErrAbortHandler) }, false, true, ""},
		"a wrapped one":   {func(http.ResponseWriter, *http.Request) Exchange { panic(fmt.Errorf("x: %w", http.ErrAbortHandler)) }, false, true, ""},
		"another error":   {func(http.ResponseWriter, *http.Request) Exchange { panic(errors.New("broken")) }, false, true, "broken"},
		"something else":  {func(http.ResponseWriter, *http.Request) Exchange { panic("torn") }, false, true, "torn"},
		"a runtime error": {func(w http.ResponseWriter, _ *http.Request) Exchange { return []Exchange{}[len(w.Header())] }, false, true, "index out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			x, aborted := Enter(tc.enter, new(Recorder), &http.Request{}, slog.New(slog.NewTextHandler(&log, nil)))
			if (x != nil) != tc.passes || aborted != tc.aborted {
				t.Errorf("it passes: %t, it is aborted: %t", x != nil, aborted)
			}
			if got := log.String(); tc.logged == "" && got != "" || !strings.Contains(got, tc.logged) {
				t.Errorf("the log is %q", got)
			}
		})
	}
}

// TestABodyCannotBeRead: it passes without its handler.
func TestABodyCannotBeRead(t *testing.T) {
	if n, err := (Body{}).Read(make([]byte, 1)); n != 0 || !errors.Is(err, ErrBody) {
		t.Errorf("got %d, %v", n, err)
	}
	if err := (Body{}).Close(); err != nil {
		t.Error(err)
	}
}

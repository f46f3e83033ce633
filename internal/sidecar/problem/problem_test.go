package problem_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/problem"
)

func TestTheClientsProtocolDecides(t *testing.T) {
	for name, tc := range map[string]struct {
		contentType string
		want        string
	}{
		"none":                   {"", "application/problem+json"},
		"JSON":                   {"application/json", "application/problem+json"},
		"gRPC":                   {"application/grpc", "application/grpc"},
		"gRPC with an encoding":  {"application/grpc+proto", "application/grpc"},
		"gRPC with a parameter":  {"application/grpc;v=1", "application/grpc"},
		"gRPC-Web is plain HTTP": {"application/grpc-web+proto", "application/problem+json"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.Header.Set("Content-Type", tc.contentType)
			w := httptest.NewRecorder()
			problem.New(http.StatusTooManyRequests, "100% used\n").Write(w, r)
			if got := w.Header().Get("Content-Type"); got != tc.want {
				t.Errorf("got %s", got)
			}
			if tc.want == "application/grpc" {
				if w.Code != 200 || w.Body.Len() > 0 || w.Header().Get("Grpc-Status") != "8" || w.Header().Get("Grpc-Message") != "100%25 used%0A" {
					t.Errorf("got %d %v %q", w.Code, w.Header(), w.Body)
				}
			} else if w.Code != http.StatusTooManyRequests {
				t.Errorf("got %d", w.Code)
			}
		})
	}
}

func TestRetryAfterIsNeverTooEarly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "", -time.Second: "", time.Nanosecond: "1", time.Second: "1", time.Second + 1: "2",
	} {
		h := http.Header{}
		problem.RetryAfter(h, d)
		if got := h.Get("Retry-After"); got != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}
}

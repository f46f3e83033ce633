package problem_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

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

// TestInputsOfAProgram of a refusal over gRPC.
func TestInputsOfAProgram(t *testing.T) {
	p := problem.New(http.StatusTooManyRequests, "used")
	if p.Title != "Too Many Requests" {
		t.Errorf("the title is %q", p.Title)
	}
	p.Reason, p.Source, p.ViolatedPolicies = "QUOTA_EXCEEDED", map[string]string{"limit": "all"}, []string{"checkout/all"}
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Content-Type", "application/grpc")
	w := httptest.NewRecorder()
	problem.RetryAfter(w.Header(), 7*time.Second)
	p.Write(w, r)
	encoded, err := base64.RawStdEncoding.DecodeString(w.Header().Get("Grpc-Status-Details-Bin"))
	if err != nil {
		t.Fatal(err)
	}
	var sent statuspb.Status
	if err := proto.Unmarshal(encoded, &sent); err != nil {
		t.Fatal(err)
	}
	got := status.FromProto(&sent)
	want := []any{
		&errdetails.ErrorInfo{Reason: "QUOTA_EXCEEDED", Domain: "weir.dev", Metadata: map[string]string{"limit": "all"}},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)},
		&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{Subject: "checkout/all", Description: "used"}}},
	}
	if got.Code() != codes.ResourceExhausted || got.Message() != "used" {
		t.Errorf("the status is %v", got)
	}
	if diff := cmp.Diff(want, got.Details(), protocmp.Transform()); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
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

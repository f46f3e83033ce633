package webhook

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/controlplane/webhook/webhooktest"
)

const (
	// maxAllocated is how much memory one review may allocate in all, in bytes.
	maxAllocated = 64 << 20

	// maxProcessor is a safety net and no figure of what a review costs, which is up to half a
	// second: without bounds the reviews below take minutes, or never end.
	maxProcessor = 10 * time.Second
)

func TestHostileReviews(t *testing.T) {
	post := reviews(t)
	for name, tc := range webhooktest.Hostile() {
		t.Run(name, func(t *testing.T) {
			if answer := post(t, tc.Bytes()); !strings.Contains(answer.Body.String(), tc.Want) {
				t.Errorf("%d %.1000s, want an answer that says %s", answer.Code, answer.Body, tc.Want)
			}
		})
	}
}

// FuzzReviews gives any text to the whole handler, long ones among them.
func FuzzReviews(f *testing.F) {
	for _, tc := range webhooktest.Hostile() {
		x := tc.Text
		f.Add(x.Start, x.Part1, x.N1, x.Mid, x.Part2, x.N2, x.End)
	}
	post := reviews(f)
	f.Fuzz(func(t *testing.T, start, part1 string, n1 int, mid, part2 string, n2 int, end string) {
		post(t, webhooktest.Text{Start: start, Part1: part1, N1: n1, Mid: mid, Part2: part2, N2: n2, End: end}.Bytes())
	})
}

// reviews returns a function that has a review answered as the controller does, and fails
// the test when that costs too much.
func reviews(t testing.TB) func(*testing.T, []byte) *httptest.ResponseRecorder {
	pods, events := newInjector()
	pods.Config.Capture = "redirect"
	served := hooks{by: map[string]http.Handler{}}
	Register(served, ourScheme(t), pods, fake.NewClientBuilder().WithScheme(ourScheme(t)).Build(), "us-east", resolve.IDs{})
	return func(t *testing.T, body []byte) *httptest.ResponseRecorder {
		events.lines = nil
		request := httptest.NewRequest(http.MethodPost, InjectPath, bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		answer := &httptest.ResponseRecorder{Body: bytes.NewBuffer(make([]byte, 0, 8<<20))}
		allocated, processor := consumed(t)
		served.by[InjectPath].ServeHTTP(answer, request)
		allocatedNow, processorNow := consumed(t)
		if n := allocatedNow - allocated; n > maxAllocated {
			t.Errorf("%d bytes allocated for a review of %d, want up to %d", n, len(body), maxAllocated)
		}
		if d := processorNow - processor; d > maxProcessor {
			t.Errorf("%s of processor time for a review of %d bytes, want up to %s", d, len(body), maxProcessor)
		}
		if testing.Verbose() {
			t.Logf("%d bytes: %d MiB, %s", len(body), (allocatedNow-allocated)>>20, processorNow-processor)
		}
		if n := len(events.lines); n > 25 {
			t.Errorf("%d Events for one pod", n)
		}
		return answer
	}
}

// consumed returns what this process has allocated and how long it has run.
func consumed(t *testing.T) (allocated uint64, processor time.Duration) {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return memory.TotalAlloc, time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

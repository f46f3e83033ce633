package webhook

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// reviewMemory is how much memory the reviews in flight may take, in bytes: a quarter of
// the limit that the chart sets for the controller, which needs half of it for 1,500
// sidecars. It admits 150 reviews of usual pods at a time, or two of the largest. Since the
// work on a review is linear in its memory, it also bounds the work that waits for a
// processor, to about a second of one.
const reviewMemory = 128 << 20

// A budget is the memory that reviews in flight may take, in bytes.
type budget struct{ *semaphore.Weighted }

func newBudget() *budget { return &budget{semaphore.NewWeighted(reviewMemory)} }

// cost returns the memory that a review takes at a time, in bytes, by the length of its body
// and by what weigh says of it.
func cost(length, memory int) int {
	const (
		answer    = 256 << 10 // with a snapshot of up to maxSnapshot in a patch
		copies    = 3         // of the body: as it was read, the objects alone, and their texts
		perMemory = 4         // lists are copied as they grow, and once more for the sidecar
		escaped   = 40        // bytes in an answer, and before, for each of a probe, at worst
		probes    = 32 << 10  // bytes of them at most, see package inject
	)
	return answer + copies*length + perMemory*memory + escaped*min(length, probes)
}

// A share is what one review has of a budget.
type share struct {
	of   *budget
	held int
}

// raise takes as much as is lacking to n bytes. It does not wait: false means that the budget
// does not have that much, and that the share is as before.
func (s *share) raise(n int) bool {
	if n <= s.held {
		return true
	}
	if !s.of.TryAcquire(int64(n - s.held)) {
		return false
	}
	s.held = n
	return true
}

func (s *share) release() {
	s.of.Release(int64(s.held))
	s.held = 0
}

// refusedReviews counts what the API server sees as failed calls.
var refusedReviews = counterOf([]string{
	strconv.Itoa(http.StatusBadRequest), strconv.Itoa(http.StatusRequestEntityTooLarge),
	strconv.Itoa(http.StatusUnsupportedMediaType), strconv.Itoa(http.StatusServiceUnavailable),
}, promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
	Name: "weir_reviews_refused_total",
	Help: "Reviews answered with an HTTP status other than 200, by that status: 503 means that those in flight took all the memory set aside for them.",
}, []string{"code"}))

package connlimit

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// logPause is how long a bound that is met is not logged again.
const logPause = time.Minute

// A Bound is one of the fleet's port. It is the value of a label.
type Bound string

// The bounds that may be met.
const (
	BoundConnections Bound = "connections"
	BoundAddress     Bound = "address"
	BoundTime        Bound = "time"
	BoundPods        Bound = "pods"
	BoundNamespace   Bound = "namespace"
	BoundPod         Bound = "pod"
	BoundMessages    Bound = "messages"
)

// causes says of each bound what happened, and the cure.
var causes = map[Bound]string{
	BoundConnections: "a connection was closed: there are too many without an authenticated stream. Admit only pods with sidecars to the port by a NetworkPolicy, or raise the memory of the controller",
	BoundAddress:     "a connection was closed: too many of its address have no authenticated stream. Look for what connects from there",
	BoundTime:        "a connection was closed: none of its streams was authenticated in time. Look for what connects from there",
	BoundPods:        "a pod was refused: there is no room for more pods, and no namespace has more of them. Raise the memory of the controller",
	BoundNamespace:   "the stream of a pod was ended for a pod of a namespace that has fewer. Raise the memory of the controller",
	BoundPod:         "a stream was ended: its pod opened another before it was served",
	BoundMessages:    "the stream of a pod is read more slowly: it sends too many messages. Look at what runs as its sidecar",
}

// Refusals counts what the bounds of the fleet's port turn away, and logs it at most once a
// minute for each bound: what meets one does so often.
type Refusals struct {
	counted *prometheus.CounterVec // by bound

	mu     sync.Mutex
	log    logr.Logger
	logged map[Bound]time.Time
	more   map[Bound]int // since then
}

// Bounds returns all bounds.
func Bounds() []Bound { return slices.Collect(maps.Keys(causes)) }

// NewRefusals returns a count by bound.
func NewRefusals(counted *prometheus.CounterVec) *Refusals {
	for _, by := range Bounds() {
		counted.WithLabelValues(string(by)) // so that the first is an increase
	}
	return &Refusals{counted: counted, log: logr.Discard(), logged: map[Bound]time.Time{}, more: map[Bound]int{}}
}

// LogTo has what is turned away logged; before, it is only counted.
func (t *Refusals) LogTo(l logr.Logger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log = l
}

// Count notes one of them; key and value name it.
func (t *Refusals) Count(by Bound, key string, value any) {
	t.counted.WithLabelValues(string(by)).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if last, ok := t.logged[by]; ok && now.Sub(last) < logPause {
		t.more[by]++
		return
	}
	t.log.Info(causes[by], "bound", string(by), key, value, "unloggedBefore", t.more[by])
	t.logged[by], t.more[by] = now, 0
}

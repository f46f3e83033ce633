package coordinator

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// logPause is how long a bound that is met is not logged again.
const logPause = time.Minute

// A portBound is one of the fleet's port. It is the value of a label.
type portBound string

const (
	boundConnections portBound = "connections"
	boundAddress     portBound = "address"
	boundTime        portBound = "time"
	boundPods        portBound = "pods"
	boundNamespace   portBound = "namespace"
	boundPod         portBound = "pod"
	boundMessages    portBound = "messages"
)

// turnedWhy says of each bound what happened, and the cure.
var turnedWhy = map[portBound]string{
	boundConnections: "a connection was closed: there are too many without an authenticated stream. Admit only pods with sidecars to the port by a NetworkPolicy, or raise the memory of the controller",
	boundAddress:     "a connection was closed: too many of its address have no authenticated stream. Look for what connects from there",
	boundTime:        "a connection was closed: none of its streams was authenticated in time. Look for what connects from there",
	boundPods:        "a pod was refused: there is no room for more pods, and no namespace has more of them. Raise the memory of the controller",
	boundNamespace:   "the stream of a pod was ended for a pod of a namespace that has fewer. Raise the memory of the controller",
	boundPod:         "a stream was ended: its pod opened another before it was served",
	boundMessages:    "the stream of a pod is read more slowly: it sends too many messages. Look at what runs as its sidecar",
}

// turned counts what the bounds of the fleet's port turn away, and logs it at most once a
// minute for each bound: what meets one does so often.
type turned struct {
	metrics *metrics

	mu     sync.Mutex
	log    logr.Logger
	logged map[portBound]time.Time
	more   map[portBound]int // since then
}

func newTurned(m *metrics) *turned {
	for by := range turnedWhy {
		m.turned.WithLabelValues(string(by)) // so that the first is an increase
	}
	return &turned{metrics: m, log: logr.Discard(), logged: map[portBound]time.Time{}, more: map[portBound]int{}}
}

// logTo has what is turned away logged; before, it is only counted.
func (t *turned) logTo(l logr.Logger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log = l
}

// away notes one of them; key and value name it.
func (t *turned) away(by portBound, key string, value any) {
	t.metrics.turned.WithLabelValues(string(by)).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if last, ok := t.logged[by]; ok && now.Sub(last) < logPause {
		t.more[by]++
		return
	}
	t.log.Info(turnedWhy[by], "bound", string(by), key, value, "unloggedBefore", t.more[by])
	t.logged[by], t.more[by] = now, 0
}

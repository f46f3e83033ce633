package failuremodes_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A hub is the cluster that keeps the budget: an API server, a clock, and the controller
// that leads.
type hub struct {
	journal *journal

	mu     sync.Mutex // guards all below
	ahead  time.Duration
	leader *kubernetes.Coordinator // nil for none
}

func newHub() *hub {
	h := &hub{journal: &journal{records: map[string]kubernetes.Record{}, versions: map[string]int{}}}
	h.elect()
	return h
}

// now reads the hub's clock.
func (h *hub) now() limiter.Instant {
	h.mu.Lock()
	defer h.mu.Unlock()
	return limiter.Instant(time.Now().Add(h.ahead).UnixMicro())
}

// set sets the clock forward, or back.
func (h *hub) set(by time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ahead += by
}

// elect lets a controller lead that knows nothing, and returns it.
func (h *hub) elect() *kubernetes.Coordinator {
	c := kubernetes.New(kubernetes.Options{Journal: h.journal, Clock: h.now})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leader = c
	return c
}

// resign takes the leader away, and returns it.
func (h *hub) resign() *kubernetes.Coordinator {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.leader
	h.leader = nil
	return c
}

var errNoLeader = errors.New("nobody leads")

func (h *hub) get() (*kubernetes.Coordinator, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leader == nil {
		return nil, lost(errNoLeader)
	}
	return h.leader, nil
}

// Apply implements federation.Coordinator.
func (h *hub) Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	leader, err := h.get()
	if err != nil {
		return ledger.Grant{}, err
	}
	return leader.Apply(ctx, id, p, c)
}

// Observe implements federation.Coordinator.
func (h *hub) Observe(ctx context.Context, id string) (ledger.State, error) {
	leader, err := h.get()
	if err != nil {
		return ledger.State{}, err
	}
	return leader.Observe(ctx, id)
}

// A journal is the hub's API server. A call takes some milliseconds.
type journal struct {
	mu       sync.Mutex // guards all below
	records  map[string]kubernetes.Record
	versions map[string]int
	next     int
	away     bool
}

func (j *journal) set(f func(j *journal)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f(j)
}

// enter waits for the API server's answer, and locks it.
func (j *journal) enter(ctx context.Context) error {
	time.Sleep(way)
	j.mu.Lock()
	if !j.away {
		return nil
	}
	j.mu.Unlock()
	<-ctx.Done()
	return ctx.Err()
}

// Load implements kubernetes.Journal.
func (j *journal) Load(ctx context.Context, id string) (kubernetes.Record, string, error) {
	if err := j.enter(ctx); err != nil {
		return kubernetes.Record{}, "", err
	}
	defer j.mu.Unlock()
	r, ok := j.records[id]
	if !ok {
		return r, "", fmt.Errorf("%s: %w", id, kubernetes.ErrNotFound)
	}
	return r, strconv.Itoa(j.versions[id]), nil
}

// Save implements kubernetes.Journal.
func (j *journal) Save(ctx context.Context, id string, r kubernetes.Record, version string) (string, error) {
	if err := j.enter(ctx); err != nil {
		return "", err
	}
	defer j.mu.Unlock()
	present := ""
	if _, ok := j.records[id]; ok {
		present = strconv.Itoa(j.versions[id])
	}
	if present != version {
		return "", &kubernetes.ConflictError{ID: id, Cause: fmt.Errorf("it has version %s", present)}
	}
	j.next++
	j.records[id], j.versions[id] = r, j.next
	return strconv.Itoa(j.next), nil
}

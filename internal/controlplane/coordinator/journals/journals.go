package journals

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

const (
	// retryInterval is the pause after an attempt to read or write that failed, and timeout
	// how long one may take.
	retryInterval = 500 * time.Millisecond
	timeout       = 5 * time.Second
	// outageInterval is how often the leader says that it serves, where no Lease does.
	outageInterval = time.Minute
)

// A Store keeps the records of durable counters, one a policy, where they survive the process.
// A policy is named namespace/name; the empty name is that of the terms.
type Store interface {
	// Load returns what is kept of a policy and its version, "" when nothing is.
	Load(ctx context.Context, policy string) (data []byte, version string, err error)
	// Save replaces what still has that version, or makes it when that is "", and returns
	// the new version. After an error it may have been replaced or not, or be later.
	Save(ctx context.Context, policy string, data []byte, version string) (string, error)
	// Sweep deletes what is over.
	Sweep(ctx context.Context, over func(policy string, data []byte) bool) error
	// Object returns the kind and the name of what holds the record of a policy.
	Object(policy string) string
}

// A Config is what the journals of a term work with.
type Config struct {
	Store Store
	Term  uint64
	First bool // no leader was before this term
	Clock func() limiter.Instant
	Log   logr.Logger
}

// Journals are those of one term of leadership.
type Journals struct {
	Config
	ctx    context.Context //nolint:containedctx // of the term: keepers come while it runs
	cancel context.CancelFunc
	runs   sync.WaitGroup

	known chan struct{} // closed once gaps are
	gaps  []limiter.Gap
}

// New returns journals that wait for Run.
func New(c Config) *Journals {
	j := &Journals{Config: c, known: make(chan struct{})}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	return j
}

// Keep carries the records of one policy from now on; see memory.Options.Keep. It does not
// block.
func (j *Journals) Keep(k *memory.Journal) { j.runs.Go(func() { j.carry(k) }) }

// Stop ends all that Keep and Run have begun, and waits for it.
func (j *Journals) Stop() {
	j.cancel()
	j.runs.Wait()
}

// Run notes the outage before this term, which ends at back at the latest, and began at
// served, or when nothing else is known (0) when a leader said last that it serves. With
// announce it says so itself from then on. It does not block.
func (j *Journals) Run(served, back limiter.Instant, announce bool) {
	j.runs.Go(func() {
		var last outages
		ok := j.retry(func(ctx context.Context) (err error) {
			last, err = j.begin(ctx, served, back)
			return err
		}, func(err error) { j.Log.Error(err, "durable counters are not served yet; trying again") })
		if !ok {
			return
		}
		j.gaps = last.Gaps
		close(j.known)
		if announce {
			wait.UntilWithContext(j.ctx, func(ctx context.Context) { j.serves(ctx, last) }, outageInterval)
		}
	})
}

// begin notes the outage before this term.
func (j *Journals) begin(ctx context.Context, served, back limiter.Instant) (last outages, err error) {
	data, version, err := j.Store.Load(ctx, "")
	if err != nil {
		return last, err
	}
	if version != "" {
		if err := json.Unmarshal(data, &last); err != nil {
			return last, fmt.Errorf("what is known of earlier terms is damaged; delete %s, and open windows of durable counters wait: %w", j.Store.Object(""), err)
		}
	}
	if last.Term < j.Term {
		last = last.follow(j.Term, served, j.Clock(), back)
	}
	if version == "" && !j.First { // the leaders before may have been away at any time
		last.Gaps = []limiter.Gap{{To: back}}
	}
	return last, j.note(ctx, last, version)
}

// serves notes that the term still does.
func (j *Journals) serves(ctx context.Context, last outages) {
	_, version, err := j.Store.Load(ctx, "")
	if last.At = j.Clock(); err == nil {
		err = j.note(ctx, last, version)
	}
	if err != nil && ctx.Err() == nil {
		j.Log.Error(err, "it is not written down that this term serves")
	}
}

func (j *Journals) note(ctx context.Context, o outages, version string) error {
	data, err := json.Marshal(o)
	if err == nil {
		_, err = j.Store.Save(ctx, "", data, version)
	}
	return err
}

// Sweep deletes the records of policies that are gone, once nothing counts of them. there
// are all limits that exist.
func (j *Journals) Sweep(ctx context.Context, there map[store.Scope]struct{}) error {
	policies := map[string]struct{}{}
	for scope := range there {
		policies[scope.Namespace+"/"+scope.Policy] = struct{}{}
	}
	return j.Store.Sweep(ctx, func(policy string, data []byte) bool {
		if _, is := policies[policy]; is || !strings.Contains(policy, "/") {
			return false
		}
		ends, err := memory.RecordEnds(data)
		return err == nil && ends < j.Clock()
	})
}

// retry calls f until it succeeds, and returns false when the term ended before.
func (j *Journals) retry(f func(context.Context) error, failed func(error)) bool {
	for {
		ctx, cancel := context.WithTimeout(j.ctx, timeout)
		err := f(ctx)
		cancel()
		if err == nil {
			return true
		}
		if j.ctx.Err() != nil {
			return false
		}
		failed(err)
		if !j.pause(retryInterval, nil) {
			return false
		}
	}
}

// pause returns after a time, or sooner when it is woken, and false when the term ended.
func (j *Journals) pause(d time.Duration, wake <-chan struct{}) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-late.C:
	case <-wake:
	case <-j.ctx.Done():
	}
	return j.ctx.Err() == nil
}

package coordinator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

const (
	// journalRetry is the pause after an attempt to read or write that failed, and
	// journalTimeout how long one may take.
	journalRetry   = 500 * time.Millisecond
	journalTimeout = 5 * time.Second
	// outageInterval is how often the leader says that it serves, where no Lease does.
	outageInterval = time.Minute
	// maxOutages bounds how many changes of leader are remembered.
	maxOutages = 512
)

// A JournalStore keeps the records of durable counters, one a policy, where they survive
// the process. A policy is named namespace/name; the empty name is that of the terms.
type JournalStore interface {
	// Load returns what is kept of a policy and its version, "" when nothing is.
	Load(ctx context.Context, policy string) (data []byte, version string, err error)
	// Save replaces what still has that version, or makes it when that is "", and returns
	// the new version. After an error it may have been replaced or not, or be later.
	Save(ctx context.Context, policy string, data []byte, version string) (string, error)
	// Sweep deletes what is over.
	Sweep(ctx context.Context, over func(policy string, data []byte) bool) error
}

// outages are the spans in which no leader served, if holders may have begun a window in one
// by themselves that is still open.
type outages struct {
	Term uint64          `json:"term"` // that served last
	At   limiter.Instant `json:"at"`   // and when at least
	Gaps []limiter.Gap   `json:"gaps"`
}

// follow adds the time from when the term before served last until all holders are back.
func (o outages) follow(term uint64, served limiter.Instant, now, back limiter.Instant) outages {
	if o.Term+1 != term || served == 0 {
		served = o.At // it knows of no other term
	}
	next := outages{Term: term, At: now}
	for _, g := range o.Gaps {
		if g.To.Add(limiter.MaxWindow) > now {
			next.Gaps = append(next.Gaps, g)
		}
	}
	if o.Term > 0 {
		next.Gaps = append(next.Gaps, limiter.Gap{From: min(served, back), To: back})
	}
	if more := len(next.Gaps) - maxOutages; more > 0 {
		next.Gaps[more].From = next.Gaps[0].From
		next.Gaps = next.Gaps[more:]
	}
	return next
}

// journals carries the records of a term's durable counters.
type journals struct {
	store  JournalStore
	cancel context.CancelFunc
	ctx    context.Context //nolint:containedctx // of the term: keepers come while it runs
	runs   sync.WaitGroup
	term   *term

	first bool          // no leader was before this term
	known chan struct{} // closed once gaps are
	gaps  []limiter.Gap
}

func newJournals(of JournalStore) *journals {
	j := &journals{store: of, known: make(chan struct{})}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	return j
}

// keep is memory.Options.Keep.
func (j *journals) keep(k *memory.Journal) { j.runs.Go(func() { j.carry(k) }) }

// stop ends what keep and run have begun.
func (j *journals) stop() {
	j.cancel()
	j.runs.Wait()
}

// run notes the term's outage, and then from time to time that it serves, unless a Lease
// says so.
func (j *journals) run(t *term, served limiter.Instant) {
	j.term = t
	j.runs.Go(func() {
		var last outages
		ok := j.retry(func(ctx context.Context) (err error) {
			last, err = j.begin(ctx, served)
			return err
		}, func(err error) { t.log.Error(err, "durable counters are not served yet; trying again") })
		if !ok {
			return
		}
		j.gaps = last.Gaps
		close(j.known)
		if served == 0 && t.Leadership == nil {
			wait.UntilWithContext(j.ctx, func(ctx context.Context) { j.serves(ctx, last) }, outageInterval)
		}
	})
}

// begin notes the outage before this term.
func (j *journals) begin(ctx context.Context, served limiter.Instant) (last outages, err error) {
	data, version, err := j.store.Load(ctx, "")
	if err != nil {
		return last, err
	}
	if version != "" {
		if err := json.Unmarshal(data, &last); err != nil {
			return last, fmt.Errorf("what is known of earlier terms is damaged; delete ConfigMap %s, and open windows of durable counters wait: %w", CountersConfigMap, err)
		}
	}
	if last.Term < j.term.number {
		last = last.follow(j.term.number, served, j.term.clock.Now(), j.term.store.Begins())
	}
	if version == "" && !j.first { // the leaders before may have been away at any time
		last.Gaps = []limiter.Gap{{To: j.term.store.Begins()}}
	}
	return last, j.note(ctx, last, version)
}

// serves notes that the term still does.
func (j *journals) serves(ctx context.Context, last outages) {
	_, version, err := j.store.Load(ctx, "")
	if last.At = j.term.clock.Now(); err == nil {
		err = j.note(ctx, last, version)
	}
	if err != nil && ctx.Err() == nil {
		j.term.log.Error(err, "it is not written down that this term serves")
	}
}

func (j *journals) note(ctx context.Context, o outages, version string) error {
	data, err := json.Marshal(o)
	if err == nil {
		_, err = j.store.Save(ctx, "", data, version)
	}
	return err
}

// retry calls f until it succeeds, and returns false when the term ended before.
func (j *journals) retry(f func(context.Context) error, failed func(error)) bool {
	for {
		ctx, cancel := context.WithTimeout(j.ctx, journalTimeout)
		err := f(ctx)
		cancel()
		if err == nil {
			return true
		}
		if j.ctx.Err() != nil {
			return false
		}
		failed(err)
		if !j.pause(journalRetry, nil) {
			return false
		}
	}
}

// pause returns after a time, or sooner when it is woken, and false when the term ended.
func (j *journals) pause(d time.Duration, wake <-chan struct{}) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-late.C:
	case <-wake:
	case <-j.ctx.Done():
	}
	return j.ctx.Err() == nil
}

// A carrier carries the records of one policy.
type carrier struct {
	*journals
	*memory.Journal
	version string
}

func (c *carrier) policy() string { return c.Namespace() + "/" + c.Policy() }

// carry has a journal go on from what was written last, and writes its records until the
// term ends or another has begun.
func (j *journals) carry(k *memory.Journal) {
	select {
	case <-j.known:
	case <-j.ctx.Done():
		return
	}
	c := &carrier{journals: j, Journal: k}
	if !j.retry(c.load, c.fail) {
		return
	}
	for {
		data, after, err := k.Next()
		switch {
		case err != nil:
			c.fail(err)
			return
		case data != nil:
			if !c.write(data) {
				return
			}
			continue
		case after == 0:
			after = time.Hour
		}
		if !j.pause(after, k.Wake()) {
			return
		}
	}
}

func (c *carrier) fail(err error) {
	c.Fail(err)
	c.term.log.Error(err, "what durable counters may grant cannot be set aside; trying again", "policy", c.policy())
}

func (c *carrier) load(ctx context.Context) error {
	data, version, err := c.store.Load(ctx, c.policy())
	if err != nil {
		return err
	}
	c.version = version
	if err := c.Load(data, c.gaps); err != nil {
		return fmt.Errorf("delete ConfigMap %s, and the open windows of its policy grant nothing until they end: %w", countersName(c.policy()), err)
	}
	return nil
}

// write writes a record, again and again until it is known that it, or another, is there.
// It returns false when the term is over.
func (c *carrier) write(data []byte) bool {
	over, again := false, false
	ok := c.retry(func(ctx context.Context) error {
		version, failed := c.store.Save(ctx, c.policy(), data, c.version)
		if failed == nil {
			c.version = version
			return nil
		}
		found, version, err := c.store.Load(ctx, c.policy())
		if err != nil {
			return failed
		}
		switch {
		case bytes.Equal(found, data):
			c.version = version
			return nil
		case version == c.version:
			return failed
		}
		term, err := memory.RecordTerm(found)
		switch {
		case found != nil && err != nil:
			return err
		case term > c.term.number:
			over = true
			return nil
		case !c.Began():
			again = true
			return nil
		}
		c.version = version // it is gone, or a term before has written what does not count
		return failed
	}, c.fail)
	switch {
	case !ok:
		return false
	case over:
		c.Fence()
		return false
	case again:
		return c.retry(c.load, c.fail)
	}
	c.Written()
	return true
}

// sweep deletes the records of policies that are gone, once nothing counts of them.
func (j *journals) sweep(ctx context.Context, there map[store.Scope]struct{}) error {
	policies := map[string]struct{}{}
	for scope := range there {
		policies[scope.Namespace+"/"+scope.Policy] = struct{}{}
	}
	return j.store.Sweep(ctx, func(policy string, data []byte) bool {
		if _, is := policies[policy]; is || !strings.Contains(policy, "/") {
			return false
		}
		ends, err := memory.RecordEnds(data)
		return err == nil && ends < j.term.clock.Now()
	})
}

// openCounters has the store keep the durable counters that a config names, so that what is
// known of them is before anybody asks.
func (t *term) openCounters(c *config) {
	if t.journals == nil || c.opened.Swap(true) {
		return
	}
	for _, l := range c.limits {
		if !l.here || l.budget != nil || !l.params.Retention.Durable {
			continue
		}
		fewest := l.span.Limit
		for _, own := range l.own {
			fewest = min(fewest, own.Longest().Limit)
		}
		t.store.Open(l.scope, l.params, fewest)
	}
}

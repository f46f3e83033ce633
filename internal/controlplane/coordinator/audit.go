package coordinator

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/store"
)

// audit measures windows until ctx is done.
func (t *term) audit(ctx context.Context) {
	tick := time.NewTicker(auditInterval)
	defer tick.Stop()
	var asked uint64
	sharing := map[store.Scope]struct{}{}
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			ask, changed := t.accounting.advance(now)
			for _, q := range ask {
				asked++
				t.ask(asked, q)
			}
			t.notices.Add(changed...)
			t.noticePools(t.poolAccounting.advance(now)...)
			t.counters.sweep(t.clock.Now())
			sharing = t.showSharing(sharing)
			t.bindings.Sweep(t.clock.Now())
			t.forgetRejected(now)
			t.metrics.audit.Observe(time.Since(now).Seconds())
		}
	}
}

// showSharing shows the limits whose values share counters to observers and in metrics, and
// logs those that did not before. A client that makes up values has others refused with it.
func (t *term) showSharing(before map[store.Scope]struct{}) map[store.Scope]struct{} {
	now, byPolicy := map[store.Scope]struct{}{}, map[types.NamespacedName][]string{}
	for _, of := range t.counters.sharing(t.clock.Now()) {
		now[of] = struct{}{}
		name := types.NamespacedName{Namespace: of.Namespace, Name: of.Policy}
		byPolicy[name] = append(byPolicy[name], of.Limit)
		if _, known := before[of]; known {
			continue
		}
		t.metrics.sharing.WithLabelValues(of.Namespace, of.Policy, of.Limit).Set(1)
		t.log.Info("there is no room for more keys of a limit; values that are new share counters until its longest window is over",
			"policy", of.Namespace+"/"+of.Policy, "limit", of.Limit)
	}
	for of := range before {
		if _, still := now[of]; !still {
			t.metrics.sharing.DeleteLabelValues(of.Namespace, of.Policy, of.Limit)
		}
	}
	t.crowded.Store(&byPolicy)
	return now
}

func queryOf(id uint64, q *inquiry) *fleetpb.AuditQuery {
	return &fleetpb.AuditQuery{
		Id: id, Namespace: q.limit.policy.Namespace, Policy: q.limit.policy.Name, Limit: q.limit.limit,
		Windows: windowsTo(q.Window), SinceMicros: int64(q.Since), Hashes: q.Hashes,
	}
}

// ask sends a query to the holders it names. Those that are gone are known to be.
func (t *term) ask(id uint64, q inquiry) {
	message := &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Audit{Audit: queryOf(id, &q)}}
	for _, h := range q.Holders {
		if s := t.sessions.of(h.PodUID()); s != nil && s.holder == h {
			s.question(id, question{limit: q.limit, id: q.ID})
			s.push(message)
		}
	}
}

// question remembers what the holder is asked. One that leaves too many answers
// owing loses its session.
func (s *session) question(id uint64, q question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.questions) >= maxQuestions {
		s.close(errSlow)
	}
	s.questions[id] = q
}

// replied enters the answer to a query. One that cannot be read leaves the window unknown.
func (t *term) replied(ctx context.Context, s *session, r *fleetpb.AuditReply) {
	s.mu.Lock()
	q, ok := s.questions[r.GetId()]
	delete(s.questions, r.GetId())
	s.mu.Unlock()
	if !ok {
		return
	}
	keys, err := keysFrom(r.GetKeys())
	t.accounting.reply(s.holder, q, keys, r.GetUnknown() || err != nil)
	if err != nil {
		wrong := rejection{kind: replyRow, of: q.limit, err: shortened(err.Error(), maxErrorText) + cure}
		t.reject(s, wrong)
		s.answer(ctx, answerOf([]rejection{wrong}))
	}
}

// unmatchedAfter is for how long requests have to come that a limit does not match until it
// counts as one that matches none.
const unmatchedAfter = time.Hour

// matches is what a holder says of the requests that a limit matches.
type matches uint8

const (
	undecided matches = iota // none came, or for less than unmatchedAfter
	some
	none
)

func matchesFrom(in *fleetpb.LimitReport) matches {
	switch {
	case in.GetMatched():
		return some
	case in.GetUnmatchedMicros() >= unmatchedAfter.Microseconds():
		return none
	}
	return undecided
}

// setMatches keeps what the holder says, and returns the policies for which that changed.
func (s *session) setMatches(said map[limitName]matches) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changed []types.NamespacedName
	keepServed(s, s.matches)
	for name, now := range said {
		if s.matches[name] != now {
			s.matches[name] = now
			changed = append(changed, name.policy)
		}
	}
	return changed
}

// observeMatches adds what the holder says of the policy's limits: some of one that matched a
// request in any pod.
func (s *session) observeMatches(of types.NamespacedName, into map[string]matches) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, said := range s.matches {
		if name.policy == of && into[name.limit] != some && said != undecided {
			into[name.limit] = said
		}
	}
}

// unmatched returns the limits that match no request of those that came, ordered by name.
func unmatched(said map[string]matches) []string {
	var names []string
	for name, m := range said {
		if m == none {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

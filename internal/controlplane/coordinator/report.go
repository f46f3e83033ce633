package coordinator

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

const (
	auditInterval = ReportInterval / 2
	maxEarly      = 16             // reports kept of a session whose policies are not known yet
	maxEarlyBytes = 2 * maxMessage // of them all, as they were sent
	maxQuestions  = 1024           // that one holder may owe answers to
	maxErrorText  = 256            // bytes of an error that are kept with what is reported
	maxReason     = 1024           // bytes of an error that is the answer to a message
)

// reported is the answer to a report that asks for one.
var reported = &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Reported{Reported: new(fleetpb.Reported)}}

// report enters what a holder counted, once it is known what the holder is served by. A
// row that makes no sense counts for nothing: what it would have said shows as missing.
func (t *term) report(ctx context.Context, s *session, r *fleetpb.Report) error {
	entered, wrong, err := t.take(s, r)
	if len(wrong) > 0 {
		t.reject(s, wrong...)
		s.answer(ctx, answerOf(wrong))
	}
	if entered && r.GetAnswer() {
		s.answer(ctx, reported)
	}
	return err
}

// take enters a report, or keeps it until it is known what the holder is served by. It returns what it could
// not read. The error says that it did neither.
func (t *term) take(s *session, r *fleetpb.Report) (entered bool, wrong []rejection, err error) {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	if by, _ := s.served(); by != nil {
		t.sendClocks(s, by)
		return true, t.enterReport(s, r), nil
	}
	// A session is sent each thing once, so what comes early is not thrown away.
	s.earlyBytes += proto.Size(r)
	if len(s.early) >= maxEarly || s.earlyBytes > maxEarlyBytes {
		return false, nil, errEarly // it reports everything again when it comes back
	}
	s.early = append(s.early, r)
	return false, nil, nil
}

// reportEarly enters what came before it was known what the holder is served by.
func (t *term) reportEarly(s *session) {
	for _, r := range s.early {
		if wrong := t.enterReport(s, r); len(wrong) > 0 {
			t.reject(s, wrong...)
			s.push(answerOf(wrong))
		}
		if r.GetAnswer() {
			s.push(reported)
		}
	}
	s.early, s.earlyBytes = nil, 0
}

// enterReport enters what can be read of a report, and returns the rest.
func (t *term) enterReport(s *session, r *fleetpb.Report) (wrong []rejection) {
	said, now := t.heard.get(len(r.GetLimits())), time.Now()
	defer t.heard.put(said)
	by, _ := s.served()
	var doubted []limitName
	for _, l := range r.GetLimits() {
		name := limitName{
			policy: types.NamespacedName{Namespace: l.GetNamespace(), Name: l.GetPolicy()},
			limit:  l.GetLimit(),
		}
		if !by.has(name.policy) {
			continue // any longer, or not yet
		}
		errs, doubtful := said.read(s, name, l, now)
		for _, err := range errs {
			if err != nil {
				wrong = append(wrong, rejection{kind: reportRow, of: name, err: shortened(err.Error(), maxErrorText) + cure})
			}
		}
		if doubtful {
			doubted = append(doubted, name)
		}
	}
	if r.GetMore() && s.spoken == nil {
		s.spoken = map[limitName]struct{}{}
	}
	t.accounting.report(s.holder, s.policies(), said.reports, s.spoken, r.GetMore())
	if !r.GetMore() {
		s.spoken = nil
	}
	t.accounting.doubt(doubted)
	t.notices.Add(s.setStoreErrors(said.storeErrors)...)
	t.notices.Add(s.setLearning(said.learning)...)
	t.notices.Add(s.setKeysFull(said.full)...)
	t.notices.Add(s.setMatches(said.matches)...)
	return append(wrong, t.enterPools(s, r.GetPools())...)
}

// maxHeard is how many limits a report may name for its maps to be used again.
const maxHeard = 16

// A heard is what a report says of limits.
type heard struct {
	reports     map[limitName]audit.Report
	storeErrors map[limitName]string
	learning    map[limitName]Learning
	full        map[limitName]KeysFull
	matches     map[limitName]matches
}

// read adds what a row says of a limit, unless the session knows it already. It returns the errors of
// fields that cannot be read, some of them nil, and whether the admitted units are among those fields.
func (h *heard) read(s *session, name limitName, l *fleetpb.LimitReport, now time.Time) (errs []error, doubtful bool) {
	report, ok, errs := reportFrom(l)
	doubtful = len(errs) > 0
	learned, failed := learningFrom(l, now)
	keys, unread := keysFullFrom(l)
	errs = append(errs, failed, unread)
	if !ok {
		return errs, doubtful
	}
	if before, again := h.reports[name]; again { // much to say comes in parts
		report.Rows, report.Hottest = append(before.Rows, report.Rows...), append(before.Hottest, report.Hottest...)
	}
	h.reports[name] = report
	storeError, matched := shortened(l.GetStoreError(), maxErrorText), matchesFrom(l)
	if failed == nil && unread == nil && s.knows(name, storeError, learned, keys, matched) {
		return errs, doubtful
	}
	h.storeErrors[name], h.matches[name] = storeError, matched
	if failed == nil {
		h.learning[name] = learned
	}
	if unread == nil {
		h.full[name] = keys
	}
	return errs, doubtful
}

// heards are used again, since thousands of sidecars report each second, and most name a limit or two.
type heards struct{ sync.Pool }

// get returns an empty one, for a report of that many limits.
func (p *heards) get(limits int) *heard {
	if limits <= maxHeard {
		if of, ok := p.Get().(*heard); ok {
			return of
		}
	}
	return &heard{
		reports: make(map[limitName]audit.Report, limits), storeErrors: map[limitName]string{}, learning: map[limitName]Learning{},
		full: map[limitName]KeysFull{}, matches: map[limitName]matches{},
	}
}

// put takes back one that is not read any more, unless it is large.
func (p *heards) put(of *heard) {
	if len(of.reports) > maxHeard {
		return
	}
	clear(of.reports)
	clear(of.storeErrors)
	clear(of.learning)
	clear(of.full)
	clear(of.matches)
	p.Put(of)
}

// enterPools enters what the holder says of the pools that it is served by; of one that it
// lets go of it may still report. It returns what cannot be read.
func (t *term) enterPools(s *session, reports []*fleetpb.PoolReport) (wrong []rejection) {
	for _, in := range reports {
		name := types.NamespacedName{Namespace: in.GetNamespace(), Name: in.GetPool()}
		if s.servingPools()[name] == nil {
			continue
		}
		report, err := poolReportFrom(in)
		if err != nil {
			wrong = append(wrong, rejection{kind: poolRow, of: limitName{policy: objectOf(name)}, err: shortened(err.Error(), maxErrorText) + cure})
			continue
		}
		before, _ := t.poolAccounting.last(s.holder, name)
		t.metrics.fences.Add(float64(t.poolAccounting.report(s.holder, name, report)))
		if before.CoordinatorError != report.CoordinatorError {
			t.noticePools(name)
		}
	}
	return wrong
}

// keepServed drops from what a holder said the limits that it does not serve any more. The
// lock of the session is held.
func keepServed[V any](s *session, said map[limitName]V) {
	maps.DeleteFunc(said, func(name limitName, _ V) bool { return s.serves.limits[name] == nil })
}

// knows reports whether the holder says of a limit what it said before: nothing of it changes.
func (s *session) knows(name limitName, storeError string, learning Learning, keys KeysFull, matched matches) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, learned := s.learning[name]
	return !learned && learning.Reason == 0 && s.storeErrors[name] == storeError && s.keysFull[name] == keys && s.matches[name] == matched
}

// setStoreErrors keeps which stores the holder cannot reach, as far as it says: a long
// report comes in parts. It returns the policies for which that changed.
func (s *session) setStoreErrors(said map[limitName]string) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changed []types.NamespacedName
	keepServed(s, s.storeErrors)
	for name, text := range said {
		if (s.storeErrors[name] == "") != (text == "") {
			changed = append(changed, name.policy)
		}
		if text == "" {
			delete(s.storeErrors, name)
		} else {
			s.storeErrors[name] = text
		}
	}
	return changed
}

// learningFrom reads what a holder says of a store that cannot know what it granted
// before. It is zero when the store refuses nothing for that.
func learningFrom(in *fleetpb.LimitReport, now time.Time) (Learning, error) {
	reason, lasts := limiter.Reason(in.GetLearningReason()), in.GetLearningMicros()
	switch {
	case in.GetLearningReason() == 0 && lasts == 0:
		return Learning{}, nil
	case in.GetLearningReason() != int32(reason) || reason != limiter.Amnesia && reason != limiter.ClockBehind:
		return Learning{}, fmt.Errorf("learning_reason is %d, which is neither Amnesia (%d) nor ClockBehind (%d)", in.GetLearningReason(), limiter.Amnesia, limiter.ClockBehind)
	case lasts < 1 || lasts > 2*int64(limiter.MaxWindow):
		return Learning{}, fmt.Errorf("learning_micros is %d, outside 1 to %d", lasts, 2*int64(limiter.MaxWindow))
	}
	return Learning{Since: now, Until: now.Add(time.Duration(lasts) * time.Microsecond), Reason: reason}, nil
}

// setLearning keeps which limits the holder says that their store grants nothing of. It
// returns the policies for which that begins, ends, or has another reason.
func (s *session) setLearning(said map[limitName]Learning) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changed []types.NamespacedName
	for name := range s.learning {
		if s.serves.limits[name] == nil {
			delete(s.learning, name)
		}
	}
	for name, now := range said {
		before, was := s.learning[name]
		if before.Reason != now.Reason {
			changed = append(changed, name.policy)
		} else if was {
			now.Since = before.Since
		}
		if now.Reason == 0 {
			delete(s.learning, name)
		} else {
			s.learning[name] = now
		}
	}
	return changed
}

// observeLearning adds what the holder says of the policy's limits: what it first said
// first and lasts longest.
func (s *session) observeLearning(policy types.NamespacedName, into map[string]Learning) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for name, said := range s.learning {
		if name.policy != policy || !now.Before(said.Until) {
			continue
		}
		known, ok := into[name.limit]
		if ok && known.Since.Before(said.Since) {
			said.Since = known.Since
		}
		if ok && known.Until.After(said.Until) {
			said.Until, said.Reason = known.Until, known.Reason
		}
		into[name.limit] = said
	}
}

// keysFullFrom reads what a holder says of values that have no counters of their own there. It
// is zero when each has one.
func keysFullFrom(in *fleetpb.LimitReport) (KeysFull, error) {
	said := KeysFull{Bound: in.GetKeysBound(), Shared: in.GetSharedKeys()}
	switch _, known := fleetpb.KeysBound_name[int32(said.Bound)]; {
	case said == KeysFull{}:
		return said, nil
	case !known || said.Bound == fleetpb.KeysBound_KEYS_BOUND_UNSPECIFIED:
		return KeysFull{}, fmt.Errorf("keys_bound is %d, which names no bound", said.Bound)
	case said.Shared < 1 || said.Shared > policy.MaxTrackedKeys:
		return KeysFull{}, fmt.Errorf("shared_keys is %d, outside 1 to %d", said.Shared, policy.MaxTrackedKeys)
	}
	return said, nil
}

// setKeysFull keeps the limits for which the holder says that values have no counters of their own.
// It returns the policies for which that begins, ends, or has another bound.
func (s *session) setKeysFull(said map[limitName]KeysFull) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changed []types.NamespacedName
	for name := range s.keysFull {
		if s.serves.limits[name] == nil {
			delete(s.keysFull, name)
		}
	}
	for name, now := range said {
		if s.keysFull[name] != now {
			changed = append(changed, name.policy)
		}
		if now == (KeysFull{}) {
			delete(s.keysFull, name)
		} else {
			s.keysFull[name] = now
		}
	}
	return changed
}

// observeKeysFull adds what the holder says of the policy's limits. Holders come by the names of
// their pods.
func (s *session) observeKeysFull(of types.NamespacedName, into map[string]KeysFull) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, said := range s.keysFull {
		if name.policy != of {
			continue
		}
		known, ok := into[name.limit]
		if !ok {
			known = said
			known.Pod = s.Pod
		}
		known.Pods++
		into[name.limit] = known
	}
}

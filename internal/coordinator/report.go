package coordinator

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/audit"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/store"
)

const (
	auditInterval = ReportInterval / 2
	maxEarly      = 16             // reports kept of a session whose policies are not known yet
	maxEarlyBytes = 2 * maxMessage // of them all, as they were sent
	maxQuestions  = 1024           // that one holder may owe answers to
	maxErrorText  = 256            // bytes of an error that are kept with what is reported
	maxReason     = 1024           // bytes of an error that is the answer to a message
)

// report enters what a holder counted, once it is known what the holder is served by. A
// row that makes no sense counts for nothing: what it would have said shows as missing.
func (t *term) report(ctx context.Context, s *session, r *fleetpb.Report) error {
	wrong, err := t.take(s, r)
	if len(wrong) > 0 {
		t.reject(s, wrong...)
		s.answer(ctx, answerOf(wrong))
	}
	return err
}

// take returns what of the report it could not read. The error says that it did not take
// the report.
func (t *term) take(s *session, r *fleetpb.Report) ([]rejection, error) {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	if by, _ := s.served(); by != nil {
		t.sendClocks(s, by)
		return t.enterReport(s, r), nil
	}
	// A session is sent each thing once, so what comes early is not thrown away.
	s.earlyBytes += proto.Size(r)
	if len(s.early) >= maxEarly || s.earlyBytes > maxEarlyBytes {
		return nil, errEarly // it reports everything again when it comes back
	}
	s.early = append(s.early, r)
	return nil, nil
}

// reportEarly enters what came before it was known what the holder is served by.
func (t *term) reportEarly(s *session) {
	for _, r := range s.early {
		if wrong := t.enterReport(s, r); len(wrong) > 0 {
			t.reject(s, wrong...)
			s.push(answerOf(wrong))
		}
	}
	s.early, s.earlyBytes = nil, 0
}

// enterReport enters what can be read of a report, and returns the rest.
func (t *term) enterReport(s *session, r *fleetpb.Report) (wrong []rejection) {
	reports := make(map[limitName]audit.Report, len(r.GetLimits()))
	storeErrors := map[limitName]string{}
	learning, now := map[limitName]Learning{}, time.Now()
	var doubted []limitName
	for _, l := range r.GetLimits() {
		name := limitName{
			policy: types.NamespacedName{Namespace: l.GetNamespace(), Name: l.GetPolicy()},
			limit:  l.GetLimit(),
		}
		if !s.enforces(name.policy) {
			continue // any longer, or not yet
		}
		report, ok, errs := reportFrom(l)
		learned, failed := learningFrom(l, now)
		for _, err := range append(errs, failed) {
			if err != nil {
				wrong = append(wrong, rejection{kind: reportRow, of: name, err: shortened(err.Error(), maxErrorText) + cure})
			}
		}
		if len(errs) > 0 {
			doubted = append(doubted, name)
		}
		if !ok {
			continue
		}
		report.Rows = append(reports[name].Rows, report.Rows...) // much to say comes in parts
		report.Hottest = append(reports[name].Hottest, report.Hottest...)
		reports[name] = report
		storeErrors[name] = shortened(l.GetStoreError(), maxErrorText)
		if failed == nil {
			learning[name] = learned
		}
	}
	t.books.report(s.holder(), s.policies(), reports, s.spoken, r.GetMore())
	if !r.GetMore() {
		clear(s.spoken)
	}
	t.books.doubt(doubted)
	t.notices.add(s.setStoreErrors(storeErrors)...)
	t.notices.add(s.setLearning(learning)...)
	return append(wrong, t.enterPools(s, r.GetPools())...)
}

// enterPools enters what the holder says of the pool that it is served by; of one that it
// lets go of it may still report. It returns what cannot be read.
func (t *term) enterPools(s *session, reports []*fleetpb.PoolReport) (wrong []rejection) {
	for _, in := range reports {
		name := types.NamespacedName{Namespace: in.GetNamespace(), Name: in.GetPool()}
		p := s.pool()
		if p == nil || p.name != name {
			continue
		}
		report, err := poolReportFrom(in)
		if err != nil {
			wrong = append(wrong, rejection{kind: poolRow, of: limitName{policy: name}, err: shortened(err.Error(), maxErrorText) + cure})
			continue
		}
		before, _ := t.poolBooks.last(s.holder(), name)
		t.metrics.fences.Add(float64(t.poolBooks.report(s.holder(), name, report)))
		if before.CoordinatorError != report.CoordinatorError {
			t.poolNotices.add(name)
		}
	}
	return wrong
}

// setStoreErrors keeps which stores the holder cannot reach, as far as it says: a long
// report comes in parts. It returns the policies for which that changed.
func (s *session) setStoreErrors(said map[limitName]string) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changed []types.NamespacedName
	for name := range s.storeErrors {
		if s.serves.limits[name] == nil {
			delete(s.storeErrors, name)
		}
	}
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
			ask, changed := t.books.advance(now)
			for _, q := range ask {
				asked++
				t.ask(asked, q)
			}
			t.notices.add(changed...)
			t.poolNotices.add(t.poolBooks.advance(now)...)
			t.counters.sweep(t.clock.Now())
			sharing = t.showSharing(sharing)
			t.draws.sweep(t.clock.Now())
			t.forgetRejected(now)
			t.metrics.audit.Observe(time.Since(now).Seconds())
		}
	}
}

// showSharing shows the limits whose values share a counter to observers and in metrics, and
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
		t.log.Info("there is no room for more keys of a limit; values that are new share one counter until its longest window is over",
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
		if s := t.sessions.of(h.PodUID); s != nil && s.holder() == h {
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
	t.books.reply(s.holder(), q, keys, r.GetUnknown() || err != nil)
	if err != nil {
		wrong := rejection{kind: replyRow, of: q.limit, err: shortened(err.Error(), maxErrorText) + cure}
		t.reject(s, wrong)
		s.answer(ctx, answerOf([]rejection{wrong}))
	}
}

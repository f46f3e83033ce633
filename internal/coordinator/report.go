package coordinator

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/audit"
	"github.com/weir-dev/weir/internal/fleetpb"
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
// report that makes no sense ends the session, so that what it would have said shows as
// missing.
func (t *term) report(s *session, r *fleetpb.Report) error {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	if by, _ := s.served(); by != nil {
		return t.enterReport(s, r)
	}
	// A session is told each thing once, so what comes early is not thrown away.
	s.earlyBytes += proto.Size(r)
	if len(s.early) >= maxEarly || s.earlyBytes > maxEarlyBytes {
		return errEarly // it tells everything anew when it comes back
	}
	s.early = append(s.early, r)
	return nil
}

// reportEarly enters what came before it was known what the holder is served by.
func (t *term) reportEarly(s *session) {
	for _, r := range s.early {
		if err := t.enterReport(s, r); err != nil {
			s.close(err)
		}
	}
	s.early, s.earlyBytes = nil, 0
}

func (t *term) enterReport(s *session, r *fleetpb.Report) error {
	reports := make(map[limitName]audit.Report, len(r.GetLimits()))
	storeErrors := map[limitName]string{}
	for _, l := range r.GetLimits() {
		name := limitName{
			policy: types.NamespacedName{Namespace: l.GetNamespace(), Name: l.GetPolicy()},
			limit:  l.GetLimit(),
		}
		if !s.enforces(name.policy) {
			continue // any longer, or not yet
		}
		report, err := reportFrom(l)
		if err != nil {
			return status.Errorf(codes.InvalidArgument, "the report of limit %q of policy %s: %v", shortened(name.limit, maxErrorText), name.policy, err)
		}
		report.Rows = append(reports[name].Rows, report.Rows...) // much to say comes in parts
		report.Hottest = append(reports[name].Hottest, report.Hottest...)
		reports[name] = report
		storeErrors[name] = shortened(l.GetStoreError(), maxErrorText)
	}
	t.books.report(s.holder(), s.policies(), reports)
	if err := t.enterPools(s, r.GetPools()); err != nil {
		return err
	}
	t.notices.add(s.setStoreErrors(storeErrors)...)
	return nil
}

// enterPools enters what the holder says of the pool that it is served by; of one that it
// lets go of it may still tell.
func (t *term) enterPools(s *session, reports []*fleetpb.PoolReport) error {
	for _, in := range reports {
		name := types.NamespacedName{Namespace: in.GetNamespace(), Name: in.GetPool()}
		p := s.pool()
		if p == nil || p.name != name {
			continue
		}
		report, err := poolReportFrom(in)
		if err != nil {
			return status.Errorf(codes.InvalidArgument, "the report of pool %s: %v", name, err)
		}
		before, _ := t.poolBooks.last(s.holder(), name)
		t.metrics.fences.Add(float64(t.poolBooks.report(s.holder(), name, report)))
		if before.CoordinatorError != report.CoordinatorError {
			t.poolNotices.add(name)
		}
	}
	return nil
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
			t.draws.sweep(t.clock.Now())
			t.metrics.audit.Observe(time.Since(now).Seconds())
		}
	}
}

// ask sends a query to the holders it names. Those that are gone are known to be.
func (t *term) ask(id uint64, q inquiry) {
	message := &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Audit{Audit: &fleetpb.AuditQuery{
		Id:        id,
		Namespace: q.limit.policy.Namespace,
		Policy:    q.limit.policy.Name,
		Limit:     q.limit.limit,
		Windows:   windowsTo(q.Window),
		Hashes:    q.Hashes,
	}}}
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

// replied enters the answer to a query.
func (t *term) replied(s *session, r *fleetpb.AuditReply) error {
	s.mu.Lock()
	q, ok := s.questions[r.GetId()]
	delete(s.questions, r.GetId())
	s.mu.Unlock()
	if !ok {
		return nil
	}
	keys, err := keysFrom(r.GetKeys())
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "the audit reply: %v", err)
	}
	t.books.reply(s.holder(), q, keys, r.GetUnknown())
	return nil
}

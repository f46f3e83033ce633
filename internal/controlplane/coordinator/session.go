package coordinator

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/handover"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/outbox"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
)

const (
	// queueSize is how many messages may wait for a holder that reads slowly.
	queueSize = 256
	// configTime is how long the leases of a session that has just begun wait for
	// its policies. Holders wait 100 ms for a lease at least.
	configTime = 50 * time.Millisecond
	// maxAsync is how many leases of one holder may wait for other clusters.
	maxAsync = 64
	// maxThrough is how many leases of one holder may be under way to one store that it
	// reaches through this controller.
	maxThrough = 64
)

// Why a session ended, other than by its stream.
var (
	errEarly    = status.Error(codes.Unavailable, "the policies of this pod are not known yet")
	errSlow     = status.Error(codes.ResourceExhausted, "the sidecar does not read what it is sent")
	errSilent   = status.Errorf(codes.DeadlineExceeded, "nothing was heard for %s", silenceTimeout)
	errReplaced = status.Error(codes.Aborted, "another stream of the same pod took over")
	errParted   = status.Error(codes.Unavailable, "this controller no longer leads")
	errLeft     = errors.New("left in good order")
)

// A session is one connected holder.
type session struct {
	podauth.Identity
	nonce   string
	holder  audit.Holder
	version string // of the sidecar's build
	capture fleetpb.Capture
	mode    fleetpb.Mode
	since   time.Time
	offered string // config version it enforced when it connected
	// promises says that the holder promises what it is asked for, and edits that it makes a
	// version of another.
	promises, edits bool

	out   *outbox.Box[*fleetpb.ToHolder]
	known chan struct{}           // closed when it is known what the holder has to enforce
	gone  chan struct{}           // closed when the session has ended
	parts handover.Parting        // orders goodbye and answers
	close context.CancelCauseFunc // first cause wins
	fit   func(limits int) error  // makes room for what the holder enforces

	slots   chan struct{}            // a token for each lease that async waits for
	through map[string]chan struct{} // the same for leases of stores behind this controller, by address

	// reporting is held while a report is entered, which keeps their order, and while it
	// changes what is accounted for; early holds those that came before there was anything.
	reporting  sync.Mutex
	early      []*fleetpb.Report
	earlyBytes int
	clocks     map[string]struct{}    // servers whose clocks were sent to the holder
	spoken     map[limitName]struct{} // limits that the parts of a report named so far

	mu          sync.Mutex
	back        bool              // it sent something since its hello, or promised what it was asked for
	serves      *config           // what the holder is served by; nil before the first
	sent        bool              // the holder was sent that, too; otherwise it is a part
	edit        *fleetpb.ToHolder // by which it was sent that; nil: as a whole
	acked       *config           // what it enforces, as it says; nil before the first
	refusal     string            // why it does not enforce what it was sent
	storeErrors map[limitName]string
	learning    map[limitName]Learning
	keysFull    map[limitName]KeysFull
	matches     map[limitName]matches
	// Rows that could not be read, of limits and of pools. The limits and pools that there
	// are bound their number.
	rejected, rejectedPools map[limitName]rejected
	counted                 sentNumbers                           // that its holders are of
	questions               map[uint64]question                   // audit queries not answered yet
	holders                 map[types.NamespacedName]int64        // how many holders enforce a policy, as it knows
	pools                   map[types.NamespacedName]*dividedPool // that it was served by, and did not let go of
}

func newSession(id podauth.Identity, hello *fleetpb.Hello, stop context.CancelCauseFunc) *session {
	return &session{
		Identity:    id,
		nonce:       hello.GetBootNonce(),
		holder:      audit.NewHolder(id.PodUID, hello.GetBootNonce()),
		version:     hello.GetVersion(),
		capture:     hello.GetCapture(),
		mode:        hello.GetMode(),
		since:       time.Now(),
		offered:     hello.GetConfigVersion(),
		promises:    hello.GetPromises(),
		edits:       hello.GetEdits(),
		out:         outbox.New[*fleetpb.ToHolder](queueSize),
		known:       make(chan struct{}),
		gone:        make(chan struct{}),
		close:       stop,
		fit:         func(int) error { return nil },
		slots:       make(chan struct{}, maxAsync),
		through:     map[string]chan struct{}{},
		storeErrors: map[limitName]string{},
		learning:    map[limitName]Learning{},
		keysFull:    map[limitName]KeysFull{},
		matches:     map[limitName]matches{},
		rejected:    map[limitName]rejected{}, rejectedPools: map[limitName]rejected{},
		questions: map[uint64]question{},
		clocks:    map[string]struct{}{},
		holders:   sharesFrom(id.Namespace, hello.GetHolders()),
		pools:     map[types.NamespacedName]*dividedPool{},
	}
}

// push queues a message for the holder without waiting; a holder for which too
// many wait loses its session.
func (s *session) push(m *fleetpb.ToHolder) {
	if !s.out.Push(m) {
		s.close(errSlow)
	}
}

// answer queues a message that the holder asked for. It waits for a slow holder,
// whose own requests wait meanwhile, but not for long.
func (s *session) answer(ctx context.Context, m *fleetpb.ToHolder) {
	if s.out.Push(m) {
		return
	}
	patience, cancel := context.WithTimeout(ctx, stallTimeout)
	defer cancel()
	if !s.out.Put(patience, m) && ctx.Err() == nil {
		s.close(errSlow)
	}
}

// async calls f while receive goes on, once fewer than maxAsync others are waited for.
// Only receive calls it.
func (s *session) async(ctx context.Context, f func()) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	go func() {
		defer func() { <-s.slots }()
		f()
	}()
}

// asyncThrough calls f while receive goes on, unless maxThrough others are under way to the
// store of that address. It does not wait: a store that is slow holds up nothing that goes
// elsewhere. Only receive calls it.
func (s *session) asyncThrough(address string, f func()) bool {
	slots := s.through[address]
	if slots == nil {
		slots = make(chan struct{}, maxThrough)
		s.through[address] = slots
	}
	select {
	case slots <- struct{}{}:
	default:
		return false
	}
	go func() {
		defer func() { <-slots }()
		f()
	}()
	return true
}

// awaitConfig waits until it is known what the holder has to enforce. It does not
// wait for long after the session began: a refusal that comes before the holder's
// patience ends says why.
func (s *session) awaitConfig(ctx context.Context) {
	patience := configTime - time.Since(s.since)
	if patience <= 0 {
		return
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-s.known:
	case <-late.C:
	case <-ctx.Done():
	}
}

// served returns what the holder is served by, nil before that is known, and whether it
// was sent that, too.
func (s *session) served() (by *config, sent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serves, s.sent
}

// enforces reports whether the policy is among those that the holder is served by.
func (s *session) enforces(name types.NamespacedName) bool {
	by, _ := s.served()
	return by.has(name)
}

// policies returns the names of those that the holder is served by.
func (s *session) policies() []types.NamespacedName {
	by, _ := s.served()
	if by == nil {
		return nil
	}
	names := make([]types.NamespacedName, 0, len(by.policies))
	for name := range by.policies {
		names = append(names, name)
	}
	return names
}

// servingPools returns the pools that the holder is served by.
func (s *session) servingPools() map[types.NamespacedName]*dividedPool {
	by, _ := s.served()
	if by == nil {
		return nil
	}
	return by.pools
}

// changing returns the policies whose state in the session changes when it is served by
// next.
func (s *session) changing(next *config, send bool) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == send && s.refusal == "" {
		return next.from(s.serves).names
	}
	return append(differing(nil, s.serves), differing(nil, next)...) // all show it
}

// acknowledge enters what the holder says of a config, and returns the policies whose state
// that changes. A holder that could not make an edit is sent the whole, once.
func (s *session) acknowledge(a *fleetpb.Acknowledge) (changed []types.NamespacedName, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sent || s.serves.version != a.GetVersion() {
		return nil, false // of one that was replaced meanwhile
	}
	if a.GetWhole() && s.edit != nil {
		s.edit = nil
		s.push(s.serves.message)
		return nil, true
	}
	before, refused := s.acked, s.refusal
	s.refusal = shortened(a.GetError(), maxReason)
	if s.refusal == "" {
		s.acked = s.serves
	}
	if s.refusal != refused { // which all policies of the session show
		before = nil
	}
	return s.serves.from(before).names, false
}

// send writes a message to the stream. It reports false when that was the last one: the stream is
// broken, ctx is done, or goodbye is said. Then the holder ends the stream, or the session ends
// without it.
func (s *session) send(ctx context.Context, stream fleetpb.Fleet_ConnectServer, m *fleetpb.ToHolder) (more bool) {
	if ctx.Err() != nil {
		return false
	}
	if err := stream.Send(m); err != nil {
		s.close(err)
		return false
	}
	if m.GetGoodbye() != nil {
		time.AfterFunc(partStep, func() { s.close(errParted) })
		return false
	}
	return true
}

// receive handles what the holder sends until the stream breaks.
func (s *session) receive(ctx context.Context, t *term, stream fleetpb.Fleet_ConnectServer) {
	silence := time.AfterFunc(silenceTimeout, func() { s.close(errSilent) })
	defer silence.Stop()
	messages := newMessageLimit()
	var next frame
	var err error
	handle := func() {
		var m *fleetpb.FromHolder
		if m, err = next.read(); err != nil {
			return
		}
		t.throttle(ctx, s, messages)
		t.arrive(s)
		err = t.handle(ctx, s, m)
	}
	for {
		err = stream.RecvMsg(&next)
		if errors.Is(err, io.EOF) {
			err = status.Error(codes.Canceled, "the sidecar closed the stream")
		}
		if err == nil {
			silence.Reset(silenceTimeout)
			t.crew.do(handle)
		}
		if err != nil && s.parts.Begun() && !errors.Is(err, errLeft) {
			err = errParted
		}
		if err != nil {
			s.close(err)
			return
		}
	}
}

// handle acts on one message. An error ends the session: for a message that does not belong
// to such a stream, or for more than is kept. A row that cannot be read is not an error.
func (t *term) handle(ctx context.Context, s *session, m *fleetpb.FromHolder) error {
	switch m := m.GetMessage().(type) {
	case *fleetpb.FromHolder_Lease:
		t.serveLease(ctx, s, m.Lease)
		return nil
	case *fleetpb.FromHolder_Heartbeat:
		if !s.parts.Answer() {
			return nil
		}
		defer s.parts.Answered()
		if share := t.beat(ctx, s, m.Heartbeat); share.GetShare().GetError() == "" || !t.parting.Load() {
			s.answer(ctx, share)
		}
		return nil
	case *fleetpb.FromHolder_Promise:
		t.promised(s, m.Promise)
		return nil
	case *fleetpb.FromHolder_Report:
		return t.report(ctx, s, m.Report)
	case *fleetpb.FromHolder_Acknowledge:
		t.acknowledged(s, m.Acknowledge)
		return nil
	case *fleetpb.FromHolder_Audit:
		t.replied(ctx, s, m.Audit)
		return nil
	case *fleetpb.FromHolder_Leave:
		return errLeft
	case *fleetpb.FromHolder_Hello:
		return status.Error(codes.InvalidArgument, "hello is the first message only")
	default:
		return nil // of a later version of the protocol
	}
}

func (t *term) acknowledged(s *session, a *fleetpb.Acknowledge) {
	changed, whole := s.acknowledge(a)
	result := "accepted"
	switch {
	case whole:
		result = "whole"
		t.metrics.pushes.Inc()
	case a.GetError() != "":
		result = "refused"
		t.log.Info("a sidecar refuses its configuration", "namespace", s.Namespace, "pod", s.Pod, "reason", shortened(a.GetError(), maxReason))
	}
	t.metrics.acks.WithLabelValues(result).Inc()
	t.notify(s, changed)
}

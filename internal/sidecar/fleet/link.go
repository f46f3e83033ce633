package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/policy/revision"
	"github.com/weir-dev/weir/pkg/store"
)

const (
	greetTimeout = 20 * time.Second
	// maxOrders is how many messages may wait until they are acted on. A leader lets go
	// of a holder that owes it half as many answers, so the reader, which hands out
	// leases and shares, never waits for a handler that takes long.
	maxOrders = 2048
)

// A link is one stream. One goroutine reads, one writes, one reports, and one
// does what was asked for, so that a large policy does not hold up leases.
type link struct {
	stream  fleetpb.Fleet_ConnectClient
	cancel  context.CancelFunc // ends the stream
	session uint64

	beats chan *fleetpb.FromHolder // sent before all that is in out
	out   chan *fleetpb.FromHolder // nil as the last one
	in    chan *fleetpb.ToHolder   // what the handler is to do
	done  chan struct{}            // closed when the stream ended

	leases *replies[*fleetpb.LeaseReply]
	shares *replies[*fleetpb.Share]

	ended    func(err error)         // is called before done is closed, so before a request fails by that
	late     func()                  // is called when a lease was decided and nobody waits for it any more
	replicas func(*fleetpb.Replicas) // is called with those that do not lead

	log      *slog.Logger
	rejected map[string]bool // causes that were logged; of handle alone

	reporting sync.Mutex    // held while reports are collected and queued, which keeps their order
	reported  chan struct{} // has the answer to a report that asked for one
}

var (
	errEnded   = errors.New("the stream to the controller ended")
	errGoodbye = errors.New("the controller ended the session")
)

func newLink(stream fleetpb.Fleet_ConnectClient, cancel context.CancelFunc, session uint64, log *slog.Logger) *link {
	return &link{
		stream: stream, cancel: cancel, session: session, log: log, rejected: map[string]bool{},
		beats:    make(chan *fleetpb.FromHolder, 8),
		out:      make(chan *fleetpb.FromHolder, 256),
		in:       make(chan *fleetpb.ToHolder, maxOrders),
		done:     make(chan struct{}),
		reported: make(chan struct{}, 1),
		leases:   newReplies[*fleetpb.LeaseReply](),
		shares:   newReplies[*fleetpb.Share](),
	}
}

// greet introduces the sidecar and returns the controller's welcome.
func (l *link) greet(hello *fleetpb.Hello) (*fleetpb.Welcome, error) {
	late := time.AfterFunc(greetTimeout, l.cancel)
	defer late.Stop()
	err := l.stream.Send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: hello}})
	if err != nil && !errors.Is(err, io.EOF) { // EOF: Recv says why
		return nil, err
	}
	m, err := l.stream.Recv()
	if err != nil {
		return nil, err
	}
	welcome := m.GetWelcome()
	if welcome == nil {
		return nil, fmt.Errorf("the controller began with %T instead of a welcome", m.GetMessage())
	}
	return welcome, nil
}

// run serves the stream until it ends. A leader that ends it in good order
// leaves no error.
func (l *link) run(ctx context.Context, h Handler, welcome *fleetpb.Welcome) error {
	var work sync.WaitGroup
	work.Go(l.write)
	work.Go(func() { l.handle(ctx, h) })
	work.Go(func() { l.reportEvery(ctx, h, welcome) })
	err := l.read(ctx, h)
	if l.ended != nil {
		l.ended(err)
	}
	close(l.done)
	l.cancel()
	work.Wait()
	if errors.Is(err, io.EOF) {
		return errEnded
	}
	return err
}

func (l *link) read(ctx context.Context, h Handler) error {
	for {
		m, err := l.stream.Recv()
		if err != nil {
			return err
		}
		switch m := m.GetMessage().(type) {
		case *fleetpb.ToHolder_Lease:
			if !l.leases.answer(m.Lease) && m.Lease.GetError() == "" {
				l.late()
			}
			continue
		case *fleetpb.ToHolder_Share:
			l.shares.answer(m.Share)
			continue
		case *fleetpb.ToHolder_Goodbye:
			return fmt.Errorf("%w: %s", errGoodbye, m.Goodbye.GetReason())
		case *fleetpb.ToHolder_Replicas:
			l.replicas(m.Replicas)
			continue
		case *fleetpb.ToHolder_Reported:
			select {
			case l.reported <- struct{}{}:
			default: // one that was not asked for
			}
			continue
		case *fleetpb.ToHolder_Promise:
			l.promise(m.Promise, h)
			continue
		}
		select {
		case l.in <- m:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// promise does what the leader asks for, and answers at once, whatever the handler is
// doing. A promise whose answer is not sent is still kept, and the leader asks again.
func (l *link) promise(r *fleetpb.PromiseRequest, h Handler) {
	begun, ok := h.Promise(limiter.Instant(r.GetNowMicros()), limiter.Instant(r.GetUntilMicros()))
	if !ok {
		return
	}
	select {
	case l.out <- &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Promise{
		Promise: &fleetpb.Promise{UntilMicros: r.GetUntilMicros(), BegunMicros: int64(begun)},
	}}:
	default: // the writer is behind
	}
}

// write sends what is queued until the stream ends or the last message is out.
func (l *link) write() {
	for {
		m, ok := l.next()
		if !ok {
			return
		}
		if m == nil {
			_ = l.stream.CloseSend()
			return
		}
		if l.stream.Send(m) != nil {
			return // the reader learns why
		}
	}
}

// next waits for the next message to send, and reports false when the stream ended.
func (l *link) next() (m *fleetpb.FromHolder, ok bool) {
	select {
	case m := <-l.beats:
		return m, true
	default:
	}
	select {
	case m := <-l.beats:
		return m, true
	case m := <-l.out:
		return m, true
	case <-l.done:
		return nil, false
	}
}

// send queues m. It blocks while the queue is full.
func (l *link) send(ctx context.Context, m *fleetpb.FromHolder) error { return l.queue(ctx, l.out, m) }

func (l *link) queue(ctx context.Context, q chan<- *fleetpb.FromHolder, m *fleetpb.FromHolder) error {
	select {
	case q <- m:
		return nil
	case <-l.done:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// handle does what the controller asks for, in its order.
func (l *link) handle(ctx context.Context, h Handler) {
	for {
		select {
		case m := <-l.in:
			l.logRejected(m.GetRejected())
			if reply := do(m, h); reply != nil && l.send(ctx, reply) != nil {
				return
			}
		case <-l.done:
			return
		}
	}
}

// logRejected says what the controller could not read. It counts for nothing, so the
// figures lack it; requests are decided as before. Each cause is logged once a stream.
func (l *link) logRejected(r *fleetpb.Rejected) {
	for _, row := range r.GetRows() {
		cause := causeOf(row.GetError())
		if l.rejected[cause] || len(l.rejected) == maxCauses {
			continue
		}
		l.rejected[cause] = true
		l.log.Warn("the controller cannot read what this sidecar sent; it counts for nothing", "row", row.GetKind(),
			"object", row.GetNamespace()+"/"+row.GetObject(), "limit", row.GetLimit(), "error", row.GetError(), "more", r.GetMore())
	}
}

func do(m *fleetpb.ToHolder, h Handler) *fleetpb.FromHolder {
	switch m := m.GetMessage().(type) {
	case *fleetpb.ToHolder_Config:
		ack := &fleetpb.Acknowledge{Version: m.Config.GetVersion()}
		if err := apply(m.Config, h); err != nil {
			ack.Error, ack.Whole = err.Error(), errors.Is(err, revision.ErrBase)
		}
		return &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Acknowledge{Acknowledge: ack}}
	case *fleetpb.ToHolder_Holders:
		for _, n := range m.Holders.GetCounts() {
			h.SetHolders(n.GetNamespace(), n.GetPolicy(), n.GetHolders())
		}
	case *fleetpb.ToHolder_Clocks:
		for _, c := range m.Clocks.GetClocks() {
			h.Reached(c.GetServer(), store.Reached{
				Now: limiter.Instant(c.GetNowMicros()), Doubtful: limiter.Instant(c.GetDoubtfulMicros()),
			})
		}
	case *fleetpb.ToHolder_Audit:
		return &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Audit{Audit: h.Audit(m.Audit)}}
	}
	return nil
}

func apply(c *fleetpb.Config, h Handler) error {
	if c.GetBase() != "" {
		editor, ok := h.(Editor)
		if !ok {
			return fmt.Errorf("%w: nothing is edited here", revision.ErrBase)
		}
		return editor.Edit(editOf(c), c.GetSecrets(), c.GetSecretsRenewed())
	}
	if got := policy.Version(c.GetSnapshot()); got != c.GetVersion() {
		return fmt.Errorf("the snapshot hashes to %s: it was changed on the way", got)
	}
	return h.Apply(c.GetVersion(), c.GetSnapshot(), c.GetSecrets())
}

// editOf returns what makes the version of a configuration of its base.
func editOf(c *fleetpb.Config) revision.Edit {
	out := revision.Edit{Base: c.GetBase(), Version: c.GetVersion(), Digest: c.GetDigest(), Data: c.GetSnapshot()}
	for _, n := range c.GetRemoved() {
		out.Removed = append(out.Removed, revision.Name{Kind: revision.Kind(n.GetKind()), Namespace: n.GetNamespace(), Name: n.GetName()})
	}
	return out
}

// leave says good-bye and waits until the controller ended the stream.
func (l *link) leave(ctx context.Context, h Handler) error {
	if err := l.report(ctx, h, false); err != nil {
		return err
	}
	leave := &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Leave{Leave: new(fleetpb.Leave)}}
	for _, m := range []*fleetpb.FromHolder{leave, nil} {
		if err := l.send(ctx, m); err != nil {
			return err
		}
	}
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

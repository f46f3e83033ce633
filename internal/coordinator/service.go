package coordinator

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/coordinator/connlimit"
	"github.com/weir-dev/weir/internal/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
)

// service is the gRPC server of the process.
type service struct {
	fleetpb.UnimplementedFleetServer
	c *Coordinator
}

// Connect serves one holder until its stream breaks or the session is closed.
func (v *service) Connect(stream fleetpb.Fleet_ConnectServer) error {
	err := v.c.receive(stream)
	v.c.metrics.closed.WithLabelValues(status.Code(err).String()).Inc()
	return err
}

// receive has the stream wait if it asks for that, and then be served by the term.
func (c *Coordinator) receive(stream fleetpb.Fleet_ConnectServer) error {
	id, err := c.authenticate(stream.Context())
	if err != nil {
		return err
	}
	defer connlimit.FromContext(stream.Context()).Keep(connlimit.Authenticated)()
	ctx, own, err := c.streams.enter(stream.Context(), id)
	if err != nil {
		return err
	}
	defer own.leave()
	first, err := firstMessage(ctx, stream)
	if err == nil && first.GetAwait() != nil {
		if err = c.waiting.await(ctx, stream, id); err == nil {
			first, err = firstMessage(ctx, stream)
		}
	}
	if err != nil {
		return err
	}
	hello := first.GetHello()
	if hello == nil {
		return status.Error(codes.InvalidArgument, "the first message must be hello")
	}
	if err := checkHello(hello, id); err != nil {
		return err
	}
	t := c.present.Load()
	if t == nil {
		return errParted
	}
	own.serve()
	return t.serve(ctx, stream, id, hello)
}

// serve serves a session until it is closed, its stream breaks or ctx is done.
func (t *term) serve(ctx context.Context, stream fleetpb.Fleet_ConnectServer, id podauth.Identity, hello *fleetpb.Hello) error {
	if hello.GetTerm() > t.number {
		return status.Errorf(codes.Unavailable, "the sidecar knows of term %d, this is %d", hello.GetTerm(), t.number)
	}
	ctx, stop := context.WithCancelCause(ctx)
	s := newSession(id, hello, stop)
	if err := t.enter(s); err != nil {
		return err
	}
	defer t.sessions.serving.Done()
	// Both end with the stream, which ends with this call; either may be blocked in
	// the stream until then.
	go s.send(ctx, stream)
	go s.receive(ctx, t, stream)
	<-ctx.Done()
	cause := context.Cause(ctx)
	t.leave(s, cause)
	if errors.Is(cause, errLeft) {
		return nil
	}
	return cause
}

// firstMessage returns the next message of a stream that has no session. The stream ends
// when it does not come in time or ctx is done.
func firstMessage(ctx context.Context, stream fleetpb.Fleet_ConnectServer) (*fleetpb.FromHolder, error) {
	type result struct {
		m   *fleetpb.FromHolder
		err error
	}
	first := make(chan result, 1)
	go func() { // ends with the stream at the latest
		m, err := stream.Recv()
		first <- result{m, err}
	}()
	late := time.NewTimer(handshakeTimeout)
	defer late.Stop()
	select {
	case <-late.C:
		return nil, status.Error(codes.DeadlineExceeded, "hello did not come in time")
	case <-ctx.Done():
		return nil, endOf(ctx)
	case r := <-first:
		return r.m, r.err
	}
}

// endOf returns why the context of a stream is done, as a status.
func endOf(ctx context.Context) error {
	cause := context.Cause(ctx)
	if _, ok := status.FromError(cause); ok {
		return cause
	}
	return status.FromContextError(ctx.Err()).Err()
}

// enter admits a session: it becomes the pod's only one.
func (t *term) enter(s *session) error {
	s.push(&fleetpb.ToHolder{Message: &fleetpb.ToHolder_Welcome{
		Welcome: &fleetpb.Welcome{Term: t.number, ReportIntervalMillis: ReportInterval.Milliseconds()},
	}})
	old, ok := t.sessions.add(s)
	if !ok {
		return errParted
	}
	if m := t.replicas.Load(); m != nil {
		s.push(m)
	}
	s.ask(t.returns.ask(s.Namespace))
	t.metrics.sessions.Set(float64(t.sessions.len()))
	if old != nil {
		old.close(errReplaced)
		t.books.lose(old.holder(), old.policies()) // the same process accounts for it again
		t.poolBooks.leave(old.holder(), old.pool())
	}
	t.log.V(1).Info("a sidecar connected", "namespace", s.Namespace, "pod", s.Pod, "version", s.version)
	t.tasks.Add(task{namespace: s.Namespace, podUID: s.PodUID})
	return nil
}

// leave takes a session off, unless another one of its pod has replaced it.
func (t *term) leave(s *session, cause error) {
	if !t.sessions.remove(s) {
		return
	}
	t.metrics.sessions.Set(float64(t.sessions.len()))
	policies := s.policies()
	if t.Pods != nil && !errors.Is(cause, errLeft) {
		t.returns.lose(s.Identity, s.shares())
	}
	if errors.Is(cause, errLeft) {
		t.returns.leave(s.PodUID)
		t.books.leave(s.holder(), policies)
	} else {
		t.books.lose(s.holder(), policies)
	}
	t.log.V(1).Info("a sidecar is gone", "namespace", s.Namespace, "pod", s.Pod, "why", cause.Error())
	t.poolBooks.leave(s.holder(), s.pool())
	t.notify(s, policies)
	t.countHolders(s.Namespace)
}

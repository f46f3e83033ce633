package coordinator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/connlimit"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
)

// newServer returns the server of the streams of sidecars while the process lives: those
// that wait for it to lead, and those that are served by its term. They come through the listener, which bounds them.
func (c *Coordinator) newServer(through *connlimit.Listener) *grpc.Server {
	config := c.TLS.Clone()
	config.MinVersion = tls.VersionTLS13
	server := grpc.NewServer(
		grpc.Creds(through.Credentials(credentials.NewTLS(config), handshakeTimeout)),
		grpc.InTapHandle(arrive),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.MaxConcurrentStreams(2), // the next while the last one ends
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeaders),
		// Thousands of connections that send a little each second are not to hold what a few
		// need that send all the time: TLS has what it read in a buffer of its own already, and
		// the headers of the only stream come once.
		grpc.ReadBufferSize(0),
		grpc.WriteBufferSize(connectionBuffer),
		grpc.HeaderTableSize(0),
		grpc.ForceServerCodecV2(frames{encoding.GetCodecV2(proto.Name)}),
		grpc.StaticStreamWindowSize(receiveWindow),
		grpc.StaticConnWindowSize(receiveWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: silenceTimeout / 2, Timeout: silenceTimeout / 2}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	)
	fleetpb.RegisterFleetServer(server, &service{c: c})
	return server
}

// stopServer ends every stream that is left. Messages that were sent before are still
// delivered, unless that takes longer than partTimeout.
func stopServer(s *grpc.Server) {
	late := time.AfterFunc(partTimeout, s.Stop)
	defer late.Stop()
	s.GracefulStop()
}

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
	var id podauth.Identity
	var err error
	c.crew.do(func() { id, err = c.authenticate(stream.Context()) })
	if err != nil {
		return err
	}
	defer connlimit.FromContext(stream.Context()).Keep(connlimit.Authenticated)()
	ctx, own, err := c.streams.enter(stream.Context(), id)
	if err != nil {
		return err
	}
	defer own.leave()
	first, err := firstMessage(ctx, stream, handshakeTimeout)
	if err == nil && first.GetAwait() != nil {
		if err = c.waiting.await(ctx, stream, id); err == nil {
			// The leader says so to all that wait at once, and its answers are a crowd, too. A stream
			// that is given up comes back by a handshake, while the leader is busiest.
			first, err = firstMessage(ctx, stream, silenceTimeout)
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
	return t.serve(ctx, own, stream, id, hello)
}

// serve serves a session until it is closed, its stream breaks or ctx is done, which own.end does.
func (t *term) serve(ctx context.Context, own *admitted, stream fleetpb.Fleet_ConnectServer, id podauth.Identity, hello *fleetpb.Hello) error {
	if hello.GetTerm() > t.number {
		return status.Errorf(codes.Unavailable, "the sidecar knows of term %d, this is %d", hello.GetTerm(), t.number)
	}
	s := newSession(id, hello, own.end)
	s.fit = own.enforce
	var err error
	t.crew.do(func() { err = t.enter(s) })
	if err != nil {
		return err
	}
	defer t.sessions.serving.Done()
	s.out.Open(func(m *fleetpb.ToHolder) bool { return s.send(ctx, stream, m) })
	context.AfterFunc(ctx, func() {
		defer close(s.gone)
		t.leave(s, context.Cause(ctx))
		finish(stream, outcome(ctx))
	})
	s.receive(ctx, t, stream)
	<-s.gone
	return outcome(ctx)
}

// outcome returns the error of a stream whose context is done; nil when the holder left.
func outcome(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, errLeft) {
		return cause
	}
	return nil
}

// finish ends a stream by what its handler is about to return. The handler is the goroutine that receives:
// without this it would wait for the holder. Were the stream's context ended instead, gRPC would say
// Canceled to the holder, before the handler returns.
func finish(stream fleetpb.Fleet_ConnectServer, err error) {
	s, ok := status.FromError(err)
	switch {
	case err == nil:
		s = status.New(codes.OK, "")
	case !ok:
		s = status.FromContextError(err)
	}
	//nolint:forcetypeassert // the transport of gRPC's own server has the method
	_ = grpc.ServerTransportStreamFromContext(stream.Context()).(interface {
		WriteStatus(*status.Status) error
	}).WriteStatus(s)
}

// An arrival is a stream that arrived.
type arrival struct {
	authorization []string // as it came; nil once it was read
}

type arrivalKey struct{}

// arrive takes the token of a stream out of what is kept while the stream lasts.
func arrive(ctx context.Context, info *tap.Info) (context.Context, error) {
	a := &arrival{authorization: info.Header["authorization"]}
	delete(info.Header, "authorization")
	return context.WithValue(ctx, arrivalKey{}, a), nil
}

// arrivalOf returns that of the stream with the context.
func arrivalOf(ctx context.Context) *arrival {
	return ctx.Value(arrivalKey{}).(*arrival) //nolint:forcetypeassert // arrive has seen every stream
}

// firstMessage returns the next message of a stream that has no session. The stream ends
// when it does not come in that time or ctx is done.
func firstMessage(ctx context.Context, stream fleetpb.Fleet_ConnectServer, within time.Duration) (*fleetpb.FromHolder, error) {
	type result struct {
		m   *fleetpb.FromHolder
		err error
	}
	first := make(chan result, 1)
	go func() { // ends with the stream at the latest
		m, err := stream.Recv()
		first <- result{m, err}
	}()
	late := time.NewTimer(within)
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
		Welcome: &fleetpb.Welcome{Term: t.number, ReportIntervalMillis: ReportInterval.Milliseconds(), AnswersReports: true},
	}})
	old, ok := t.admit(s)
	if !ok {
		return errParted
	}
	t.sendReplicas(s)
	s.ask(t.absences.Ask(s.Namespace))
	t.askLast(s)
	t.metrics.sessions.Set(float64(t.sessions.len()))
	if old != nil {
		old.close(errReplaced)
	}
	t.log.V(1).Info("a sidecar connected", "namespace", s.Namespace, "pod", s.Pod, "version", s.version)
	t.tasks.Add(task{namespace: s.Namespace, fresh: true})
	return nil
}

// admit makes s its pod's session and returns the one that it replaces, if any, which accounts for
// nothing any more. It returns false when no more are admitted. The process may be the same: s is served
// after that, so that it accounts for what it is served by.
func (t *term) admit(s *session) (old *session, ok bool) {
	t.doors.Lock()
	defer t.doors.Unlock()
	s.reporting.Lock()
	defer s.reporting.Unlock()
	if old, ok = t.sessions.add(s); old != nil {
		t.accounting.lose(old.holder, old.policies())
		t.poolAccounting.leave(old.holder, old.servingPools())
	}
	return old, ok
}

// remove takes a session off, and reports whether it was its pod's. It accounts for nothing any more
// before the next of its process does.
func (t *term) remove(s *session, left bool) bool {
	t.doors.Lock()
	defer t.doors.Unlock()
	if !t.dismiss(s, left) {
		return false
	}
	if policies := s.policies(); left {
		t.accounting.leave(s.holder, policies)
	} else {
		t.accounting.lose(s.holder, policies)
	}
	t.poolAccounting.leave(s.holder, s.servingPools())
	return true
}

// leave takes a session off, unless another one of its pod has replaced it.
func (t *term) leave(s *session, cause error) {
	if !t.remove(s, errors.Is(cause, errLeft)) {
		return
	}
	t.metrics.sessions.Set(float64(t.sessions.len()))
	policies := s.policies()
	t.log.V(1).Info("a sidecar is gone", "namespace", s.Namespace, "pod", s.Pod, "why", cause.Error())
	t.notify(s, policies)
	t.countHolders(s.Namespace)
}

// authenticate returns whose token the stream carries; its error is a status.
func (c *Coordinator) authenticate(ctx context.Context) (podauth.Identity, error) {
	token, ok := arrivalOf(ctx).bearer()
	if !ok {
		c.metrics.authentications.WithLabelValues("missing").Inc()
		return podauth.Identity{}, status.Error(codes.Unauthenticated, "no bearer token in the authorization metadata")
	}
	ctx, cancel := context.WithTimeout(ctx, authenticateTimeout)
	defer cancel()
	id, err := c.Authenticator.Authenticate(ctx, token)
	switch {
	case errors.Is(err, podauth.ErrUnauthenticated):
		c.metrics.authentications.WithLabelValues("refused").Inc()
		return podauth.Identity{}, status.Error(codes.Unauthenticated, err.Error())
	case errors.Is(err, podauth.ErrCrowded):
		c.metrics.authentications.WithLabelValues("limited").Inc()
		return podauth.Identity{}, status.Error(codes.ResourceExhausted, err.Error())
	case err != nil:
		c.metrics.authentications.WithLabelValues("failed").Inc()
		return podauth.Identity{}, status.Errorf(codes.Unavailable, "the token cannot be reviewed now: %v", err)
	}
	c.metrics.authentications.WithLabelValues("accepted").Inc()
	return id, nil
}

// bearer returns the token that the stream came with, once.
func (a *arrival) bearer() (string, bool) {
	values := a.authorization
	a.authorization = nil
	if len(values) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	return token, strings.EqualFold(scheme, "bearer") && token != ""
}

// checkHello reports what in hello contradicts the identity, as a status.
func checkHello(hello *fleetpb.Hello, id podauth.Identity) error {
	for _, claim := range []struct{ what, said, proved string }{
		{"namespace", hello.GetNamespace(), id.Namespace},
		{"pod", hello.GetPod(), id.Pod},
		{"pod UID", hello.GetPodUid(), id.PodUID},
	} {
		if claim.said != claim.proved {
			return status.Error(codes.PermissionDenied,
				fmt.Sprintf("hello names %s %q, but the token belongs to %q", claim.what, shortened(claim.said, maxErrorText), claim.proved))
		}
	}
	if n := len(hello.GetBootNonce()); n == 0 || n > maxNonce {
		return status.Errorf(codes.InvalidArgument, "hello has a boot nonce of %d bytes, must be 1 to %d", n, maxNonce)
	}
	for _, version := range []struct{ what, said string }{
		{"version", hello.GetVersion()},
		{"config version", hello.GetConfigVersion()},
	} {
		if n := len(version.said); n > maxVersion {
			return status.Errorf(codes.InvalidArgument, "hello has a %s of %d bytes, must be at most %d", version.what, n, maxVersion)
		}
	}
	return nil
}

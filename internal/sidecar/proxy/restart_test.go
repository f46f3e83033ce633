package proxy_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// A relay gives the connections of one listener to the app that runs now, as a socket does that
// two processes share: the next one listens before the last one stops.
type relay struct {
	net.Listener
	conns chan net.Conn
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: inner, conns: make(chan net.Conn)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := inner.Accept()
			if err != nil {
				return
			}
			select {
			case r.conns <- c:
			case <-t.Context().Done():
				c.Close()
			}
		}
	}()
	t.Cleanup(func() {
		inner.Close()
		<-done
	})
	return r
}

// share is the listener of one app. It ends without closing the socket.
type share struct {
	*relay
	end   context.Context //nolint:containedctx // a listener has no context of its own
	close context.CancelFunc
}

func (r *relay) share() *share {
	end, stop := context.WithCancel(context.Background())
	return &share{r, end, stop}
}

func (s *share) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.end.Done():
		return nil, net.ErrClosed
	}
}

func (s *share) Close() error {
	s.close()
	return nil
}

// A run is one process of an app. A call for the service "held" is answered once the test lets it pass.
type run struct {
	healthpb.UnimplementedHealthServer
	*grpc.Server
	held   chan struct{} // has a token for each call that waits
	gate   chan struct{}
	served atomic.Int64
	done   sync.WaitGroup
}

func (r *relay) start() *run {
	app := &run{Server: grpc.NewServer(), held: make(chan struct{}, 64), gate: make(chan struct{})}
	healthpb.RegisterHealthServer(app.Server, app)
	l := r.share()
	app.done.Go(func() { _ = app.Serve(l) })
	return app
}

func (a *run) Check(ctx context.Context, in *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	a.served.Add(1)
	if in.GetService() == "held" {
		a.held <- struct{}{}
		select {
		case <-a.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

// A gRPC app that is restarted gracefully ends its connections by GOAWAY. Calls that it has begun
// are answered by it, and those that come meanwhile by the next one.
func TestNoCallIsLostWhenAGRPCAppRestarts(t *testing.T) {
	const clients, held, restarts = 4, 3, 5
	r := newRelay(t)
	app := r.start()
	sidecar := inFront(t, r.Addr().String(), admit)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	var calling sync.WaitGroup
	defer calling.Wait()
	done := make(chan struct{})
	defer close(done)
	made := make([]atomic.Int64, clients)
	all := make([]healthpb.HealthClient, clients)
	for i := range clients {
		all[i] = healthClient(t, sidecar)
		calling.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				if _, err := all[i].Check(ctx, new(healthpb.HealthCheckRequest)); err != nil {
					t.Errorf("call %d of client %d: %v", n, i, err)
					return
				}
				made[i].Add(1)
			}
		})
	}
	for range restarts {
		answers := make(chan error, clients*held)
		for _, c := range all {
			for range held {
				go func() {
					_, err := c.Check(ctx, &healthpb.HealthCheckRequest{Service: "held"})
					answers <- err
				}()
			}
		}
		for range cap(answers) {
			receive(ctx, t, app.held)
		}
		last, stopped := app, make(chan struct{})
		app = r.start()
		go func() {
			defer close(stopped)
			last.GracefulStop()
		}()
		for i := range made { // no client's calls stay with the last one, which still answers
			before := made[i].Load()
			eventually(t, fmt.Sprintf("client %d makes no calls", i), func() bool { return made[i].Load() > before+1 })
		}
		eventually(t, "the next app is not called", func() bool { return app.served.Load() > 0 })
		close(last.gate)
		for range cap(answers) {
			if err := receive(ctx, t, answers); err != nil {
				t.Errorf("a call that was held: %v", err)
			}
		}
		receive(ctx, t, stopped)
		last.done.Wait()
	}
	t.Cleanup(func() {
		app.Stop()
		app.done.Wait()
	})
}

// receive returns what comes through a channel before the test is over.
func receive[T any](ctx context.Context, t *testing.T, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-ctx.Done():
		t.Fatal("nothing came")
	}
	return got
}

package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/fleetpb"
)

// fleet connects to the fleet's port with a token. The stream ends with ctx.
func (w *world) fleet(ctx context.Context, token string) (fleetpb.Fleet_ConnectClient, io.Closer, error) {
	config := w.tls()
	config.ServerName = fleetName
	conn, err := grpc.NewClient("passthrough:///"+w.cluster.Controller.FleetAddress(), grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		return nil, nil, err
	}
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	stream, err := fleetpb.NewFleetClient(conn).Connect(ctx)
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return stream, conn, nil
}

// connects connects with a token, and returns how that ends.
func connects(token func(context.Context, *world) (string, error)) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		text, err := token(ctx, w)
		if err != nil {
			return "", err
		}
		return w.connect1(ctx, text)
	}
}

func (w *world) connect1(ctx context.Context, token string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stream, conn, err := w.fleet(ctx, token)
	if err != nil {
		return err.Error(), nil
	}
	defer conn.Close()
	m, err := stream.Recv()
	return fmt.Sprint(m, " ", err), nil
}

// greet connects as the intruder, and says hello.
func (w *world) greet(ctx context.Context, edit func(*fleetpb.Hello)) (fleetpb.Fleet_ConnectClient, io.Closer, error) {
	pod, err := w.intrude(ctx)
	if err != nil {
		return nil, nil, err
	}
	token, err := w.tokenOf(ctx, pod, inject.TokenAudience, true)
	if err != nil {
		return nil, nil, err
	}
	stream, conn, err := w.fleet(ctx, token)
	if err != nil {
		return nil, nil, err
	}
	hello := &fleetpb.Hello{PodUid: string(pod.UID), BootNonce: rand.Text(), Namespace: pod.Namespace, Pod: pod.Name, Version: "evil", Capture: fleetpb.Capture_CAPTURE_PORT, Mode: fleetpb.Mode_MODE_ENFORCE}
	edit(hello)
	return stream, conn, stream.Send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: hello}})
}

// greets says hello, and returns what is answered.
func greets(edit func(*fleetpb.Hello)) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, conn, err := w.greet(ctx, edit)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		return answersOf(stream, func(m *fleetpb.ToHolder) bool { return m.GetConfig() != nil }, cancel), nil
	}
}

// firstSays sends a message in place of hello.
func firstSays(m *fleetpb.FromHolder) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		token, err := tokenFor(inject.TokenAudience, true)(ctx, w)
		if err != nil {
			return "", err
		}
		stream, conn, err := w.fleet(ctx, token)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		if err := stream.Send(m); err != nil {
			return "", err
		}
		return answersOf(stream, nil, cancel), nil
	}
}

// talks says hello, waits for the policies, sends messages, and returns all that is answered in
// a while.
func talks(all ...*fleetpb.FromHolder) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, conn, err := w.greet(ctx, func(*fleetpb.Hello) {})
		if err != nil {
			return "", err
		}
		defer conn.Close()
		answer := answersOf(stream, func(m *fleetpb.ToHolder) bool { return m.GetConfig() != nil }, cancel)
		for _, m := range all {
			if err := stream.Send(m); err != nil {
				break // the answer says why
			}
		}
		return answer + "; " + answersOf(stream, func(m *fleetpb.ToHolder) bool {
			return m.GetLease() != nil || m.GetShare() != nil || m.GetRejected() != nil
		}, cancel), nil
	}
}

// answersOf returns what comes over a stream until one message is what is waited for, for a
// while at most.
func answersOf(stream fleetpb.Fleet_ConnectClient, last func(*fleetpb.ToHolder) bool, cancel func()) string {
	late := time.AfterFunc(answersTime, cancel)
	defer late.Stop()
	var lines []string
	for {
		m, err := stream.Recv()
		if err != nil {
			return strings.Join(append(lines, err.Error()), "; ")
		}
		if m.GetConfig() != nil {
			lines = append(lines, "config")
		} else {
			lines = append(lines, m.String())
		}
		if last != nil && last(m) {
			return strings.Join(lines, "; ")
		}
	}
}

// manyStreams opens streams of one pod and counts how many stay open.
func manyStreams(n int) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan struct{}, n)
		for range n {
			stream, conn, err := w.greet(ctx, func(*fleetpb.Hello) {})
			if err != nil {
				return "", err
			}
			defer conn.Close()
			go func() {
				for {
					if _, err := stream.Recv(); err != nil {
						ended <- struct{}{}
						return
					}
				}
			}()
		}
		const most = 2
		for i := range n - most {
			select {
			case <-ended:
			case <-ctx.Done():
				return fmt.Sprintf("%d of %d are open", n-i, n), nil
			}
		}
		return fmt.Sprintf("at most %d open", most), nil
	}
}

// floodsLeases sends a message again and again.
func floodsLeases(m *fleetpb.FromHolder) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		stream, conn, err := w.greet(ctx, func(*fleetpb.Hello) {})
		if err != nil {
			return "", err
		}
		defer conn.Close()
		go func() {
			for {
				if _, err := stream.Recv(); err != nil {
					return
				}
			}
		}()
		n := 0
		for stream.Send(m) == nil {
			n++
		}
		return fmt.Sprintf("%d sent", n), nil
	}
}

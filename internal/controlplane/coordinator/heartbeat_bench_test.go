package coordinator

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/policy"
)

// BenchmarkBeats measures what beats of one pool cost the leader, over TCP and TLS. The
// holders, each on a connection of its own with one beat under way at a time, are in
// another process. Beats a second are those of one core: by the time that this process
// was computing.
func BenchmarkBeats(b *testing.B) {
	for _, holders := range []int{8, 64, 512, 4096} {
		b.Run(fmt.Sprintf("holders=%d", holders), func(b *testing.B) {
			address := serve(b, sharing(benchmarked), tokens{})
			fleet := startFleet(b, "TestHoldersOfABenchmark", fmt.Sprintf("%s %d %d", address, holders, b.N))
			fleet.await(b, "ready")
			b.ReportAllocs()
			b.ResetTimer()
			before := computed(b)
			fleet.order(b)
			fleet.await(b, "done")
			busy := computed(b) - before
			b.StopTimer()
			b.ReportMetric(float64(b.N)/busy.Seconds(), "beats/s/core")
			fleet.end(b)
		})
	}
}

// benchmarkEnv has a process beat for a benchmark: the address, how many holders, and
// how many beats.
const benchmarkEnv = "WEIR_TEST_HOLDERS"

var benchmarked = pooled("shop", 1, 100_000)

// TestHoldersOfABenchmark is the process of the holders.
func TestHoldersOfABenchmark(t *testing.T) {
	var address string
	var holders, beats int
	if _, err := fmt.Sscan(os.Getenv(benchmarkEnv), &address, &holders, &beats); err != nil {
		return // of no benchmark
	}
	streams := make([]fleetpb.Fleet_ConnectClient, holders)
	for i := range streams {
		streams[i] = enter(t, address, pod("shop", fmt.Sprint("web-", i)), "")
	}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	var work sync.WaitGroup
	for i, stream := range streams {
		work.Go(func() { beatAll(t, stream, benchmarked, beats/holders+min(1, max(0, beats%holders-i))) })
	}
	work.Wait()
	fmt.Println("done")
}

// computed returns for how long this process was computing.
func computed(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// serve leads until the benchmark ends and returns where.
func serve(b *testing.B, resolver Resolver, by podauth.Authenticator) string {
	b.Helper()
	c := New(Config{
		Address: "127.0.0.1:0", TLS: &tls.Config{Certificates: []tls.Certificate{certificate}},
		Authenticator: by, Resolver: resolver, Terms: first(),
	})
	address, listen := make(chan string, 1), c.listen
	c.listen = func(ctx context.Context, at string) (net.Listener, error) {
		l, err := listen(ctx, at)
		if err == nil {
			address <- l.Addr().String()
		}
		return l, err
	}
	ctx, stop := context.WithCancel(log.IntoContext(b.Context(), logr.Discard()))
	stopped := make(chan error, 1)
	go func() { stopped <- c.Start(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			b.Error(err)
		}
		c.Close()
	})
	return <-address
}

// enter opens a session by a token that ends in padding, and returns it when its pool was sent.
func enter(b testing.TB, address string, id podauth.Identity, padding string) fleetpb.Fleet_ConnectClient {
	b.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+tokenOf(id)+padding))
	b.Cleanup(func() { cancel(); _ = conn.Close() })
	stream, err := fleetpb.NewFleetClient(conn).Connect(ctx)
	if err != nil {
		b.Fatal(err)
	}
	if err := stream.Send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: helloOf(id, "1")}}); err != nil {
		b.Fatal(err)
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			b.Fatal(err)
		}
		if m.GetConfig() != nil {
			return stream
		}
	}
}

// beatAll beats as often as said, each time when the last beat was answered.
func beatAll(b testing.TB, stream fleetpb.Fleet_ConnectClient, p *policy.Pool, beats int) {
	for seq := range beats {
		if err := stream.Send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Heartbeat{Heartbeat: &fleetpb.Heartbeat{
			Namespace: p.Namespace, Pool: p.Name, Generation: p.Generation, Op: int32(pool.Beat), Seq: int64(seq) + 1, InFlight: 1, Peak: 1,
		}}}); err != nil {
			b.Error(err)
			return
		}
		if !answered(b, stream) {
			return
		}
	}
}

// answered waits for a share.
func answered(b testing.TB, stream fleetpb.Fleet_ConnectClient) bool {
	for {
		m, err := stream.Recv()
		switch {
		case err != nil:
			b.Error(err)
			return false
		case m.GetShare().GetError() != "":
			b.Error(m.GetShare().GetError())
			return false
		case m.GetShare() != nil:
			return true
		}
	}
}

package coordinator

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	measured "runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// BenchmarkStreams measures what the stream of a sidecar costs the leader, over TCP and TLS: the
// live heap, the stacks and the goroutines of each at rest, and the work for each report. The
// sidecars are in another process. Their tokens are as long as those of service accounts.
func BenchmarkStreams(b *testing.B) {
	for _, sidecars := range []int{1000} {
		b.Run(fmt.Sprintf("sidecars=%d", sidecars), func(b *testing.B) {
			p := sharing(benchmarked)
			p.set(true, limited("shop", 1, 1_000_000, 10*limiter.Second))
			address, before := serve(b, p, long{}), taken()
			fleet := startFleet(b, "TestSidecarsOfABenchmark", fmt.Sprintf("%s %d %d", address, sidecars, b.N))
			fleet.await(b, "ready")
			b.ReportAllocs()
			b.ResetTimer()
			began := computed(b)
			fleet.order(b)
			fleet.await(b, "done")
			busy := computed(b) - began
			b.StopTimer()
			after := taken()
			b.ReportMetric(float64(busy.Nanoseconds())/float64(b.N), "cpu-ns/op")
			for unit, n := range after {
				b.ReportMetric((n-before[unit])/float64(sidecars), unit+"/stream")
			}
			fleet.end(b)
		})
	}
}

// long is an Authenticator of tokens that are as long as those that kubelets project.
type long struct{ tokens }

var padding = "#" + strings.Repeat("0123456789abcdef", 64)

func (l long) Authenticate(ctx context.Context, token string) (podauth.Identity, error) {
	short, _, _ := strings.Cut(token, "#")
	return l.tokens.Authenticate(ctx, short)
}

// taken returns what this process takes when nothing is garbage: bytes of the heap and of stacks, and goroutines.
func taken() map[string]float64 {
	for range 6 { // each halves stacks that are much too large
		runtime.GC()
	}
	of := map[string]string{
		"heap-B": "/memory/classes/heap/objects:bytes", "stack-B": "/memory/classes/heap/stacks:bytes", "goroutines": "/sched/goroutines:goroutines",
	}
	out := map[string]float64{}
	for unit, name := range of {
		sample := []measured.Sample{{Name: name}}
		measured.Read(sample)
		out[unit] = float64(sample[0].Value.Uint64())
	}
	return out
}

// A benchmarkedFleet is a process of sidecars.
type benchmarkedFleet struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startFleet runs a test of this program in a process of its own.
func startFleet(b *testing.B, test, args string) *benchmarkedFleet {
	b.Helper()
	f := &benchmarkedFleet{Cmd: exec.CommandContext(b.Context(), os.Args[0], "-test.run=^"+test+"$")}
	f.Env = append(os.Environ(), benchmarkEnv+"="+args)
	out, err := f.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	f.out = bufio.NewReader(out)
	if f.in, err = f.StdinPipe(); err != nil {
		b.Fatal(err)
	}
	if err := f.Start(); err != nil {
		b.Fatal(err)
	}
	return f
}

// await waits until the process says a word.
func (f *benchmarkedFleet) await(b *testing.B, word string) {
	b.Helper()
	if line, err := f.out.ReadString('\n'); err != nil || line != word+"\n" {
		b.Fatalf("the sidecars say %q, want %q: %v", line, word, err)
	}
}

// order has the process go on.
func (f *benchmarkedFleet) order(b *testing.B) {
	b.Helper()
	if _, err := fmt.Fprintln(f.in); err != nil {
		b.Fatal(err)
	}
}

// end waits until the process has ended.
func (f *benchmarkedFleet) end(b *testing.B) {
	b.Helper()
	_ = f.in.Close()
	said, _ := io.ReadAll(f.out)
	if err := f.Wait(); err != nil {
		b.Errorf("%v: %s", err, said)
	}
}

// TestSidecarsOfABenchmark is the process of the sidecars of BenchmarkStreams.
func TestSidecarsOfABenchmark(t *testing.T) {
	var address string
	var sidecars, reports int
	if _, err := fmt.Sscan(os.Getenv(benchmarkEnv), &address, &sidecars, &reports); err != nil {
		return // of no benchmark
	}
	orders := bufio.NewReader(os.Stdin)
	begin := make(chan struct{})
	var connected, work sync.WaitGroup
	connecting := make(chan struct{}, 8)
	for i := range sidecars {
		connected.Add(1)
		work.Go(func() {
			connecting <- struct{}{}
			stream := enter(t, address, pod("shop", fmt.Sprint("web-", i)), padding)
			<-connecting
			connected.Done()
			if err := reportAll(stream, begin, reports/sidecars+min(1, max(0, reports%sidecars-i))); err != nil {
				t.Error(err)
			}
		})
	}
	connected.Wait()
	fmt.Println("ready")
	_, _ = orders.ReadString('\n')
	close(begin)
	work.Wait()
	fmt.Println("done")
	_, _ = orders.ReadString('\n')
}

// reportAll reports now and then until it has to begin, then as often as said, and returns when all
// has been read.
func reportAll(stream fleetpb.Fleet_ConnectClient, begin <-chan struct{}, reports int) error {
	for begun := false; !begun; {
		if err := stream.Send(reportOf(0)); err != nil {
			return err
		}
		select {
		case <-begin:
			begun = true
		case <-time.After(ReportInterval):
		}
	}
	for i := range reports {
		if err := stream.Send(reportOf(int64(i))); err != nil {
			return err
		}
	}
	beat := &fleetpb.Heartbeat{Namespace: "shop", Pool: "db", Generation: 1, Op: int32(pool.Beat), Seq: 1}
	if err := stream.Send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Heartbeat{Heartbeat: beat}}); err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		switch {
		case err != nil:
			return err
		case m.GetRejected() != nil || m.GetShare().GetError() != "":
			return errors.New(m.String())
		case m.GetShare() != nil:
			return nil
		}
	}
}

// reportOf is a report of a sidecar that admitted as many in a window.
func reportOf(admitted int64) *fleetpb.FromHolder {
	window := &fleetpb.Window{Rate: &fleetpb.Rate{Limit: 1_000_000, WindowMicros: int64(10 * limiter.Second)}, Index: 1}
	return &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Report{Report: &fleetpb.Report{Limits: []*fleetpb.LimitReport{{
		Namespace: "shop", Policy: "checkout", Limit: "all", Generation: 1,
		AdmittedTotal: admitted, RoundTripsTotal: admitted, PlacedTotal: new(admitted),
		Windows: []*fleetpb.WindowReport{{Windows: []*fleetpb.Window{window}, Admitted: admitted}},
	}}}}}
}

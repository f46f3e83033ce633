package coordinator

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/connlimit"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// withRoom runs f with a leader that has room for that number of pods.
func withRoom(t *testing.T, pods int, f func(t *testing.T, l *leader)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t, &memoryTerms{}, publishing())
		l.limitPods(pods)
		l.start()
		defer l.end()
		f(t, l)
	})
}

// limitPods leaves room for a number of pods that enforce one limit each.
func (l *leader) limitPods(n int) { l.streams.pods = newStreams(n).pods }

// ended returns the code with which a stream ended by now, and false when it goes on.
func (s *sidecar) ended() (codes.Code, bool) {
	synctest.Wait()
	failed := make(chan error, 1)
	go func() { failed <- s.failure() }()
	synctest.Wait()
	select {
	case err := <-failed:
		return status.Code(err), true
	default:
		return codes.OK, false
	}
}

// TestAPodHasTwoStreams: of those that were not served yet, a newer one ends an older one.
func TestAPodHasTwoStreams(t *testing.T) {
	for name, tc := range map[string]struct {
		served bool
		opens  int
		left   int // of those that it opens then
	}{
		"two streams":                            {opens: 2, left: 2},
		"more":                                   {opens: 5, left: 2},
		"beside one that is served, a successor": {served: true, opens: 1, left: 1},
		"but no more":                            {served: true, opens: 5, left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			withRoom(t, 10, func(t *testing.T, l *leader) {
				id := pod("shop", "web-0")
				var session *sidecar
				if tc.served {
					session = l.connect(id, "1")
					defer session.close()
				}
				var all []*sidecar
				for range tc.opens {
					s := l.dial(tokenOf(id))
					defer s.close()
					all = append(all, s)
					synctest.Wait()
				}
				for i, s := range all {
					code, over := s.ended()
					if wanted := i >= tc.opens-tc.left; over == wanted || over && code != codes.Aborted {
						t.Errorf("stream %d of %d ended: %t, with %v", i, tc.opens, over, code)
					}
				}
				if n := l.metBy(connlimit.BoundPod); n != tc.opens-tc.left {
					t.Errorf("the bound was met %d times, want %d", n, tc.opens-tc.left)
				}
				if tc.served && l.present.Load().sessions.len() != 1 {
					t.Error("the session has ended")
				}
				if l.streams.len() != 1 {
					t.Errorf("%d pods have streams, want 1", l.streams.len())
				}
			})
		})
	}
}

// TestNoNamespaceTakesTheRoomOfOthers: one alone has all of it, until another one comes.
func TestNoNamespaceTakesTheRoomOfOthers(t *testing.T) {
	withRoom(t, 4, func(t *testing.T, l *leader) {
		names := func(of string) string {
			var out []string
			for _, s := range l.present.Load().sessions.in(of) {
				out = append(out, s.Pod)
			}
			return strings.Join(out, " ")
		}
		try := func(id podauth.Identity) (*sidecar, codes.Code) {
			s := l.dial(tokenOf(id))
			_ = s.stream.Send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: helloOf(id, "1")}})
			m, err := s.stream.Recv()
			if m.GetWelcome() == nil && err == nil {
				t.Errorf("got %v, want a welcome", m)
			}
			synctest.Wait()
			return s, status.Code(err)
		}
		for _, tc := range []struct {
			namespace, pod string
			want           codes.Code
			large, small   string
		}{
			{"large", "0", codes.OK, "0", ""},
			{"large", "1", codes.OK, "0 1", ""},
			{"large", "2", codes.OK, "0 1 2", ""},
			{"large", "3", codes.OK, "0 1 2 3", ""},
			{"large", "4", codes.ResourceExhausted, "0 1 2 3", ""},
			{"large", "2", codes.OK, "0 1 2 3", ""}, // its own successor needs no room
			{"small", "a", codes.OK, "0 1 2", "a"},
			{"large", "3", codes.ResourceExhausted, "0 1 2", "a"}, // it comes back
			{"small", "b", codes.OK, "0 1", "a b"},
			{"small", "c", codes.ResourceExhausted, "0 1", "a b"},
		} {
			s, code := try(pod(tc.namespace, tc.pod))
			defer s.close()
			if code != tc.want || names("large") != tc.large || names("small") != tc.small {
				t.Errorf("pod %s of %s: %v, then %q and %q have sessions, want %v, %q and %q",
					tc.pod, tc.namespace, code, names("large"), names("small"), tc.want, tc.large, tc.small)
			}
		}
		if a, b := l.metBy(connlimit.BoundPods), l.metBy(connlimit.BoundNamespace); a != 3 || b != 2 {
			t.Errorf("%d were refused and %d ended, want 3 and 2", a, b)
		}
	})
}

// many returns n policies.
func many(namespace string, generation int64, n int) (all []policy.Policy) {
	for i := range n {
		p := limited(namespace, generation, 10, limiter.Second)
		p.Name = fmt.Sprintf("policy-%03d", i)
		all = append(all, p)
	}
	return all
}

// TestAPodTakesRoomByItsLimits: four pods of one limit have room, or two that enforce 33 each. Those
// without room are refused, before they are served, until fewer limits select them. Of two that enforce
// one more the first to be served by it ends, and the second has its room if that was given back by then.
func TestAPodTakesRoomByItsLimits(t *testing.T) {
	withRoom(t, 4, func(t *testing.T, l *leader) {
		l.policies.set(true, many("shop", 1, 33)...)
		taken := func() float64 {
			synctest.Wait()
			return l.streams.taken()
		}
		first, second := l.connect(pod("shop", "0"), "1"), l.connect(pod("shop", "1"), "1")
		defer first.close()
		defer second.close()
		first.config()
		second.config()
		if got := taken(); got != 1 {
			t.Errorf("%.2f of the room is taken, want all", got)
		}
		third := l.dial(tokenOf(pod("shop", "2")))
		defer third.close()
		if code, over := third.ended(); !over || code != codes.ResourceExhausted {
			t.Errorf("a pod without room has %v, %t, want it refused", code, over)
		}

		l.policies.set(true, many("shop", 2, 34)...) // one more each
		l.Refresh("shop")
		gone := 0
		for _, s := range []*sidecar{first, second} {
			if code, over := s.ended(); over && code == codes.ResourceExhausted {
				gone++
			}
		}
		if got := l.present.Load().sessions.len(); gone == 0 || got != 2-gone {
			t.Errorf("%d sessions ended and %d are left, want one or both ended: there is room for 33 limits of each", gone, got)
		}
		first.close()
		second.close()
		fourth := l.connect(pod("shop", "3"), "1")
		defer fourth.close()
		if got := len(fourth.config().Policies); got != 34 || taken() != 130.0/256 {
			t.Errorf("alone it enforces %d limits and takes %.2f of the room, want 34 and 0.51", got, taken())
		}

		fifth := l.dial(tokenOf(pod("shop", "4"))) // has room for one limit, not for 34
		defer fifth.close()
		if code, over := fifth.ended(); !over || code != codes.ResourceExhausted {
			t.Errorf("a pod that will have no room has %v, %t, want it refused before it is served", code, over)
		}

		l.policies.set(true, many("shop", 3, 1)...)
		l.Refresh("shop")
		fourth.config()
		for i := range 3 {
			s := l.connect(pod("shop", fmt.Sprint("more-", i)), "1")
			defer s.close()
			s.config()
		}
		if got := taken(); got != 1 || len(l.streams.refused) != 0 {
			t.Errorf("%.2f of the room is taken by four pods of a limit, and %v are refused more; want all, and none", got, l.streams.refused)
		}
	})
}

// TestNoRoomIsTakenByAPodThatLeft: nor is it one for which there was too little.
func TestNoRoomIsTakenByAPodThatLeft(t *testing.T) {
	refusals := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "refusals"}, []string{"bound"})
	ss := newStreams(4)
	ss.refusals = connlimit.NewRefusals(refusals)
	_, s, err := ss.enter(t.Context(), pod("shop", "0"))
	if err != nil {
		t.Fatal(err)
	}
	s.leave()
	if err := s.enforce(2); err == nil || ss.taken() != 0 || len(ss.refused) != 0 || testutil.ToFloat64(refusals.WithLabelValues(string(connlimit.BoundPods))) != 0 {
		t.Errorf("the error is %v, %.2f of the room is taken, and %v are refused", err, ss.taken(), ss.refused)
	}
}

// TestALimitMoreTakesNoRoomOfOtherNamespaces: beyond its share a namespace loses its own pods.
func TestALimitMoreTakesNoRoomOfOtherNamespaces(t *testing.T) {
	withRoom(t, 4, func(t *testing.T, l *leader) {
		l.policies.set(true, append(many("large", 1, 1), many("small", 1, 1)...)...)
		var large, small []*sidecar
		for i := range 2 {
			large = append(large, l.connect(pod("large", fmt.Sprint("a", i)), "1"))
			small = append(small, l.connect(pod("small", fmt.Sprint("b", i)), "1"))
			defer large[i].close()
			defer small[i].close()
		}
		synctest.Wait()
		l.policies.set(true, append(many("large", 2, 200), many("small", 1, 1)...)...)
		l.Refresh("large")
		for i := range 2 {
			if code, over := large[i].ended(); !over || code != codes.ResourceExhausted {
				t.Errorf("a pod with too many limits has %v, %t, want it refused", code, over)
			}
			if code, over := small[i].ended(); over {
				t.Errorf("a pod of another namespace ended with %v", code)
			}
		}
	})
}

// TestAPodThatIsGoneLeavesRoom.
func TestAPodThatIsGoneLeavesRoom(t *testing.T) {
	withRoom(t, 1, func(t *testing.T, l *leader) {
		for _, name := range []string{"web-0", "web-1", "web-2"} {
			s := l.connect(pod("shop", name), "1")
			s.close()
			time.Sleep(time.Second)
		}
		if n := l.streams.len(); n != 0 || len(l.streams.byPod) != 0 {
			t.Errorf("%d pods have streams, %d are known; want none", n, len(l.streams.byPod))
		}
	})
}

// TestAPodWhoseRoomIsNeededStopsWaiting, too.
func TestAPodWhoseRoomIsNeededStopsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elected := make(chan struct{})
		l := newLeader(t, &memoryTerms{}, publishing(), func(c *Config) { c.Elected = elected })
		l.limitPods(2)
		l.start()
		defer l.end()
		first, second := l.wait(pod("large", "0")), l.wait(pod("large", "1"))
		defer first.close()
		defer second.close()
		other := l.wait(pod("small", "a"))
		defer other.close()
		if code, over := second.ended(); !over || code != codes.ResourceExhausted {
			t.Errorf("the newest of the larger namespace ended: %t, with %v", over, code)
		}
		if l.waiting.len() != 2 {
			t.Errorf("%d wait, want 2", l.waiting.len())
		}
	})
}

// len returns the number of pods with streams.
func (ss *streams) len() int {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return len(ss.byPod)
}

// standBy starts a Coordinator that leads once elected is closed.
func standBy(t *testing.T, terms *memoryTerms, p *policies, change ...func(*Config)) (l *leader, elected chan struct{}) {
	t.Helper()
	elected = make(chan struct{})
	return lead(t, terms, p, append(change, func(c *Config) { c.Elected = elected })...), elected
}

// wait opens a stream that waits.
func (l *leader) wait(id podauth.Identity) *sidecar {
	l.t.Helper()
	s := l.dial(tokenOf(id))
	s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Await{Await: new(fleetpb.Await)}})
	synctest.Wait()
	return s
}

// reviewed counts how often it is asked.
type reviewed struct {
	podauth.Authenticator
	n *int
}

func (c reviewed) Authenticate(ctx context.Context, token string) (podauth.Identity, error) {
	*c.n++
	return c.Authenticator.Authenticate(ctx, token)
}

// TestASidecarWaitsForALeader: when it leads, the sidecar is served over the stream that it
// has, and its token is not reviewed again.
func TestASidecarWaitsForALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, reviews := limited("shop", 1, 10, limiter.Second), 0
		l, elected := standBy(t, &memoryTerms{}, publishing(p), func(c *Config) { c.Authenticator = reviewed{tokens{}, &reviews} })
		defer l.end()
		id := pod("shop", "web-0")
		s := l.wait(id)
		defer s.close()
		if _, err := s.stream.Header(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // far longer than a handshake, and than a session may be silent
		if got := l.waiting.len(); got != 1 {
			t.Fatalf("%d sidecars wait, want 1", got)
		}
		close(elected)
		began := time.Now()
		if m := s.recv(); m.GetLead().GetTerm() != 1 {
			t.Fatalf("got %v, want to hear that it leads in term 1", m)
		}
		s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: helloOf(id, "1")}})
		if m := s.recv(); m.GetWelcome().GetTerm() != 1 {
			t.Fatalf("got %v, want a welcome", m)
		}
		s.config()
		if took := time.Since(began); took > 0 || reviews != 1 {
			t.Errorf("it took %s and %d reviews, want none and 1", took, reviews)
		}
		if got := l.waiting.len(); got != 0 {
			t.Errorf("%d sidecars still wait", got)
		}
		time.Sleep(time.Second)
		if r := s.lease(p, p.Limits[0], want(3)); r.GetGranted() != 3 {
			t.Errorf("reply = %v, want 3 units", r)
		}
	})
}

func TestWhoDoesNotWaitOn(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(*leader, *sidecar)
		want codes.Code
	}{
		"another stream of the pod waits": {func(l *leader, s *sidecar) { s.t.Cleanup(l.wait(pod("shop", "web-0")).close) }, codes.Aborted},
		"the replica stops":               {func(l *leader, _ *sidecar) { l.stop() }, codes.Unavailable},
		"the sidecar goes":                {func(_ *leader, s *sidecar) { s.close() }, codes.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				terms := &memoryTerms{}
				l, _ := standBy(t, terms, publishing())
				s := l.wait(pod("shop", "web-0"))
				defer s.close()
				before := l.waiting.len()
				tc.end(l, s)
				if got := status.Code(s.failure()); got != tc.want {
					t.Errorf("code = %v, want %v", got, tc.want)
				}
				synctest.Wait()
				if got := l.waiting.len(); before != 1 || got > 1 || got == 1 && tc.want != codes.Aborted {
					t.Errorf("%d waited, then %d", before, got)
				}
				l.end()
				if terms.left.Term != 0 {
					t.Errorf("term %d began although nobody was elected", terms.left.Term)
				}
			})
		})
	}
}

// TestNobodyWaitsWithoutAToken: a stream that waits costs memory.
func TestNobodyWaitsWithoutAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := standBy(t, &memoryTerms{}, publishing())
		defer l.end()
		s := l.dial("made up")
		defer s.close()
		// The stream may be refused before this is sent.
		_ = s.stream.Send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Await{Await: new(fleetpb.Await)}})
		if got := status.Code(s.failure()); got != codes.Unauthenticated || l.waiting.len() != 0 {
			t.Errorf("code = %v and %d wait, want %v and none", got, l.waiting.len(), codes.Unauthenticated)
		}
	})
}

// TestWhoWaitedHasToSayHello: a stream that says nothing is let go of, after the time that it may
// be silent.
func TestWhoWaitedHasToSayHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, elected := standBy(t, &memoryTerms{}, publishing())
		defer l.end()
		s := l.wait(pod("shop", "web-0"))
		defer s.close()
		close(elected)
		began := time.Now()
		if got := status.Code(s.failure()); got != codes.DeadlineExceeded || time.Since(began) != silenceTimeout {
			t.Errorf("code = %v after %s, want %v after %s", got, time.Since(began), codes.DeadlineExceeded, silenceTimeout)
		}
	})
}

// TestAPodThatSendsTooMuchWaits: its stream is read at the rate, and goes on.
func TestAPodThatSendsTooMuchWaits(t *testing.T) {
	p := limited("shop", 1, 10, limiter.Second)
	withOne(t, p, func(t *testing.T, l *leader, s *sidecar) {
		const seconds = 1
		began := time.Now()
		old := &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Acknowledge{Acknowledge: &fleetpb.Acknowledge{Version: "old"}}}
		for range (1 + seconds) * messageRate {
			s.send(old)
		}
		if r := s.lease(p, p.Limits[0]); r.GetGranted() != 1 {
			t.Errorf("reply = %v, want a unit", r)
		}
		if took := time.Since(began); took < seconds*time.Second || took > (seconds+1)*time.Second {
			t.Errorf("it took %s, want %d s", took, seconds)
		}
		if n := testutil.ToFloat64(l.metrics.refusals.WithLabelValues(string(connlimit.BoundMessages))); n == 0 {
			t.Error("nothing shows that the pod met the bound")
		}
	})
}

// TestAStreamAtRestHasOneGoroutine here, beside those of its connection: the handler's, which waits for a
// message.
func TestAStreamAtRestHasOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		defer l.end()
		const sidecars = 5
		for i := range sidecars {
			s := l.connect(pod("shop", fmt.Sprint("web-", i)), "1")
			defer s.close()
			s.config()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		var stacks strings.Builder
		if err := pprof.Lookup("goroutine").WriteTo(&stacks, 2); err != nil {
			t.Fatal(err)
		}
		handlers, others := 0, 0
		for one := range strings.SplitSeq(stacks.String(), "\n\n") {
			if strings.Contains(one, "coordinator.(*service).Connect(") {
				handlers++
				continue
			}
			for _, in := range []string{"coordinator.(*session).", "outbox.(*Box", "coordinator.firstMessage"} {
				if strings.Contains(one, in) {
					others++
				}
			}
		}
		if handlers != sidecars || others != 0 {
			t.Errorf("%d streams have %d goroutines of handlers and %d others", sidecars, handlers, others)
		}
	})
}

// TestACrewIsSmall: more goroutines work when there is more work at once, and few of them wait for more.
func TestACrewIsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew()
		var did atomic.Int64
		work := func(times int, takes time.Duration) {
			var all sync.WaitGroup
			for range times {
				all.Go(func() {
					before, done := time.Now(), false
					c.do(func() {
						time.Sleep(takes)
						done = true
						did.Add(1)
					})
					if !done || time.Since(before) != takes {
						t.Errorf("do returned after %s and the work was done: %t", time.Since(before), done)
					}
				})
			}
			all.Wait()
			synctest.Wait()
		}
		work(1, time.Second)
		work(1, time.Second)
		if got := len(c.idle); got != 1 {
			t.Errorf("%d goroutines wait after two jobs one after the other, want 1", got)
		}
		work(10*maxIdle, time.Second)
		if got := len(c.idle); got != maxIdle {
			t.Errorf("%d goroutines wait, want %d", got, maxIdle)
		}
		c.stop()
		synctest.Wait()
		work(3, time.Second) // and the bubble ends although jobs came later
		if did.Load() != 2+10*maxIdle+3 {
			t.Errorf("%d jobs were done", did.Load())
		}
	})
}

// TestAMessageIsReadLater than it came, and freed then. A message that cannot be read is an error with its status.
func TestAMessageIsReadLater(t *testing.T) {
	codec := frames{encoding.GetCodecV2(proto.Name)}
	leave := &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Leave{Leave: new(fleetpb.Leave)}}
	pool := new(countingPool)
	came := func(data []byte) mem.BufferSlice {
		pool.out++
		data = append(make([]byte, 0, 4096), data...) // small ones are in no pool
		return mem.BufferSlice{mem.NewBuffer(&data, pool)}
	}
	sent, err := codec.Marshal(leave)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		data []byte
		want *fleetpb.FromHolder
		code codes.Code
	}{
		"a message":   {sent.Materialize(), leave, codes.OK},
		"an empty":    {nil, new(fleetpb.FromHolder), codes.OK},
		"no message":  {[]byte{0xff}, nil, codes.Internal},
		"another end": {sent.Materialize()[:1], nil, codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			var f frame
			data := came(tc.data)
			if err := codec.Unmarshal(data, &f); err != nil {
				t.Fatal(err)
			}
			data.Free() // as gRPC does then
			if pool.out != 1 {
				t.Fatalf("%d buffers are in use before the message is read", pool.out)
			}
			got, err := f.read()
			if !protobuf.Equal(got, tc.want) || status.Code(err) != tc.code {
				t.Errorf("read %v, %v, want %v and %v", got, err, tc.want, tc.code)
			}
			if pool.out != 0 || f.data != nil {
				t.Errorf("%d buffers are in use after it", pool.out)
			}
		})
	}
	var at fleetpb.FromHolder
	if err := codec.Unmarshal(sent, &at); err != nil || !protobuf.Equal(&at, leave) {
		t.Errorf("at once it is %v, %v", &at, err)
	}
}

// A countingPool counts the buffers that are in use.
type countingPool struct{ out int }

func (*countingPool) Get(n int) *[]byte { return new(make([]byte, n)) }
func (p *countingPool) Put(*[]byte)     { p.out-- }

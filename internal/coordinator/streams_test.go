package coordinator

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/coordinator/connlimit"
	"github.com/weir-dev/weir/internal/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
)

// withRoom runs f with a leader that has room for so many pods.
func withRoom(t *testing.T, pods int, f func(t *testing.T, l *leader)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t, &memoryTerms{}, publishing())
		l.streams = newStreams(pods, l.refusals)
		l.start()
		defer l.end()
		f(t, l)
	})
}

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
		l.streams = newStreams(2, l.refusals)
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
	return ss.pods.Taken
}

package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestPromisesAreAskedFor while somebody is absent, and until a window has begun after that.
func TestPromisesAreAskedFor(t *testing.T) {
	s := newStage(t)
	s.at(1)
	first := s.ask("shop").GetPromise()
	if got := limiter.Instant(first.GetUntilMicros()).Sub(limiter.Instant(first.GetNowMicros())); got != promiseTime || first.GetNowMicros() != int64(s.now) {
		t.Errorf("asked for %v", first)
	}
	s.at(1.9)
	if next := s.ask("shop").GetPromise(); next.GetUntilMicros() != first.GetUntilMicros() {
		t.Errorf("asked for %v beside %v", next, first)
	}
	if s.ask("other") != nil {
		t.Error("sidecars are asked although nobody was absent")
	}
	s.promises("web-0", "1", 0)
	s.at(4)
	s.promises("web-1", "1", 0)
	s.at(14)
	if s.ask("shop") == nil {
		t.Error("nobody is asked any more, though no window need have begun since all are back")
	}
	s.at(14.1)
	if s.ask("shop") != nil {
		t.Error("all are asked for good")
	}
	if newReturns(func() limiter.Instant { return 1 }, true, nil).ask("shop") != nil {
		t.Error("the first leader asks")
	}
}

// TestASidecarIsBackOnceItPromised what its leader asks it for; one of an earlier version is
// not asked.
func TestASidecarIsBackOnceItPromised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 1, 10, 4*limiter.Second)
		l := lead(t, &memoryTerms{left: Handover{Term: 1}}, publishing(p), podsOf(pod("shop", "web-0"), pod("shop", "web-1")).watched)
		defer l.end()
		s := l.dial(tokenOf(pod("shop", "web-0")))
		defer s.close()
		hello := helloOf(pod("shop", "web-0"), "1")
		hello.Promises, hello.ConfigVersion = true, wholeOf(nil, p)
		hello.Holders = []*fleetpb.Holders_Count{{Namespace: p.Namespace, Policy: p.Name, Holders: 2}}
		s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: hello}})
		if m := s.recv(); m.GetWelcome() == nil {
			t.Fatalf("got %v, want a welcome", m)
		}
		request := s.recv().GetPromise()
		if request == nil {
			t.Fatal("a sidecar that comes back is not asked to promise")
		}
		s.report()
		if l.present.Load().sessions.of("web-0-uid").isBack() {
			t.Error("the sidecar is back before it promised")
		}
		s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Promise{Promise: &fleetpb.Promise{UntilMicros: request.GetUntilMicros()}}})
		synctest.Wait()
		if !l.present.Load().sessions.of("web-0-uid").isBack() {
			t.Error("the sidecar promised and is not back")
		}
		other := l.comeBack(pod("shop", "web-1"), p, 2)
		defer other.close()
		if !l.present.Load().sessions.of("web-1-uid").isBack() {
			t.Error("a sidecar that does not promise is not back")
		}
		time.Sleep(promiseInterval)
		synctest.Wait()
		for m := s.recv(); m.GetPromise() == nil; m = s.recv() {
			if m.GetHolders() == nil {
				t.Fatalf("got %v, want another request", m)
			}
		}
	})
}

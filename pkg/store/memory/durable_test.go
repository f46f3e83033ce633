package memory_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/testing/seeds"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

var errAway = errors.New("the API server is away")

// An archive keeps the records of one policy, as an API server does.
type archive struct {
	mu      sync.Mutex
	data    []byte
	writes  int
	away    bool
	latency time.Duration
}

func (a *archive) write(before, data []byte) error {
	if a.latency > 0 {
		<-time.After(a.latency)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.away:
		return errAway
	case !bytes.Equal(a.data, before):
		return errors.New("conflict")
	}
	a.data, a.writes = data, a.writes+1
	return nil
}

// carry is what the coordinator does with a journal.
func (a *archive) carry(ctx context.Context, t *testing.T, k *memory.Journal, gaps []limiter.Gap) {
	a.mu.Lock()
	last := a.data
	a.mu.Unlock()
	if err := k.Load(last, gaps); err != nil {
		t.Errorf("Load: %v", err)
		return
	}
	for {
		data, after, err := k.Next()
		if err != nil {
			t.Errorf("Next: %v", err)
			return
		}
		for data != nil {
			if err := a.write(last, data); err == nil {
				k.Written()
				last, data = data, nil
			} else if k.Fail(err); !pause(ctx, time.Second, nil) {
				return
			}
		}
		if after == 0 {
			after = time.Hour
		}
		if !pause(ctx, after, k.Wake()) {
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-late.C:
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// A reign is a leader's store, in a bubble.
type reign struct {
	*memory.Store
	t     *testing.T
	clock *memory.Clock
	stop  func()
}

func (a *archive) reign(t *testing.T, term uint64, ledger *memory.Ledger) *reign {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	clock := memory.NewClock(time.Now(), 0)
	s := memory.New(memory.Options{Clock: clock.Now, Ledger: ledger, Overlap: 1, Term: term, Keep: func(k *memory.Journal) {
		running.Go(func() { a.carry(ctx, t, k, nil) })
	}})
	<-time.After(time.Second)
	return &reign{Store: s, t: t, clock: clock, stop: func() { cancel(); running.Wait() }}
}

func perDay(n int64) limiter.Params {
	p := perWindow(n, limiter.Day)
	p.Retention.Durable = true
	return p
}

func (r *reign) take(hash string, p limiter.Params, n int64) limiter.Result {
	r.t.Helper()
	return apply(r.t, r.Store, counterOf(hash), p, lease(n))
}

// open has the limit be known from its first window on, as a limit that is new is.
func (r *reign) open(p limiter.Params) limiter.Params {
	p.Retention.Born = r.Facts().Durable.Memories
	r.Open(counterOf("").Scope, p, p.Rates[0].Limit)
	return p
}

func TestADurableCounterOutlivesItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &archive{latency: 5 * time.Millisecond}
		first := a.reign(t, 1, nil)
		p := first.open(perDay(1600))
		var granted int64
		for range 40 {
			granted += first.take("", p, 20).Granted
			<-time.After(100 * time.Millisecond)
		}
		if granted < 600 { // in half a minute it would be a day's quota
			t.Errorf("granted %d of 800 asked for", granted)
		}
		t.Logf("%d writes in 4 s", a.writes)
		if a.writes > 9 {
			t.Errorf("%d writes, want one a second and a few that somebody waited for", a.writes)
		}
		first.stop()
		next := a.reign(t, 2, nil)
		p.Retention.Born = nil
		res := next.take("", perDay(1600), 1)
		if res.Granted != 1 {
			t.Fatalf("after a crash the first request gets %+v", res)
		}
		lost := 1600 - 1 - res.Remaining - granted
		t.Logf("forfeited %d of 1600", lost)
		if lost < 0 || lost > 1600/8 {
			t.Errorf("forfeited %d", lost)
		}
		next.stop()
	})
}

func TestAHandOverForfeitsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &archive{latency: 5 * time.Millisecond}
		first := a.reign(t, 1, nil)
		p := first.open(perDay(1600))
		granted := first.take("a", p, 30).Granted + first.take("b", p, 700).Granted + first.take("b", p, 300).Granted
		for term := range uint64(3) {
			data, _, err := first.Export(unbounded)
			if err != nil {
				t.Fatal(err)
			}
			first.stop()
			ledger, err := memory.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			first = a.reign(t, term+2, ledger)
		}
		p.Retention.Born = nil
		for hash, want := range map[string]int64{"a": 1600 - 30 - 1, "b": 1600 - (granted - 30) - 1, "c": 1600 - 1} {
			if res := first.take(hash, p, 1); res.Granted != 1 || res.Remaining != want {
				t.Errorf("%s: got %+v, want %d left", hash, res, want)
			}
		}
		first.stop()
		last := a.reign(t, 9, nil)
		for hash, most := range map[string]int64{"a": 1600 - 30 - 1, "b": 1600 - (granted - 30) - 1, "c": 1600 - 1} {
			if res := last.take(hash, p, 1); res.Granted != 1 || res.Remaining >= most {
				t.Errorf("after the crash %s: got %+v, want less than %d left", hash, res, most)
			}
		}
		last.stop()
	})
}

func TestUnitsSetAsideAreGrantedWhileTheAPIServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &archive{}
		s := a.reign(t, 1, nil)
		p := s.open(perDay(3200))
		s.take("a", p, 1)
		a.mu.Lock()
		a.away = true
		a.mu.Unlock()
		if res := s.take("a", p, 1000); res.Granted != 99 {
			t.Errorf("granted %d, want the 99 that are set aside", res.Granted)
		}
		<-time.After(5 * time.Second)
		_, err := s.Apply(t.Context(), counterOf("a"), p, lease(1))
		outage, ok := errors.AsType[*store.UnavailableError](err)
		if !ok || !errors.Is(err, errAway) || outage.Part != counterOf("a").Scope {
			t.Errorf("got %v, want an outage of the limit", err)
		}
		if res := s.take("b", p, 10); res.Granted != 10 {
			t.Errorf("another key gets %+v", res)
		}
		a.mu.Lock()
		a.away = false
		a.mu.Unlock()
		<-time.After(5 * time.Second)
		if res := s.take("a", p, 10); res.Granted == 0 {
			t.Errorf("when the API server is back: %+v", res)
		}
		s.stop()
	})
}

func TestBeyondTheRoomKeysWaitAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 20_000
		a := &archive{latency: 5 * time.Millisecond}
		s := a.reign(t, 1, nil)
		p := s.open(perDay(3200))
		granted := map[string]int64{}
		for range 3 {
			for i := range keys {
				hash := store.HashValue(fmt.Sprint(i))
				granted[hash] += s.take(hash, p, 60).Granted
				if i%1000 == 0 {
					<-time.After(time.Second)
				}
			}
			<-time.After(time.Minute)
		}
		for hash, n := range granted {
			if n < 100 {
				t.Fatalf("%s is granted %d of 180", hash, n)
			}
		}
		t.Logf("%d bytes in %d writes", len(a.data), a.writes)
		if len(a.data) > 512<<10 {
			t.Errorf("the record has %d bytes", len(a.data))
		}
		s.stop()
		next := a.reign(t, 2, nil)
		reasons := map[limiter.Reason]int{}
		for hash, n := range granted {
			res := next.take(hash, perDay(3200), 3200)
			if res.Granted > 3200-n {
				t.Fatalf("granted %d and then %d of 3200", n, res.Granted)
			}
			reasons[res.Reason]++
		}
		t.Log(reasons)
		if reasons[limiter.Granted] < 5000 || reasons[limiter.Amnesia] < 5000 || len(reasons) != 2 {
			t.Errorf("after the crash: %v", reasons)
		}
		next.stop()
	})
}

// TestManyCrashes has leaders follow each other in the midst of a window, some of them in
// order, while keys are asked for at random.
func TestManyCrashes(t *testing.T) {
	for seed := range seeds.Of(uint64(20)) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			a := &archive{latency: time.Duration(rng.IntN(30)) * time.Millisecond}
			p := perDay(1 + rng.Int64N(400))
			granted := map[string]map[int64]int64{}
			s := a.reign(t, 1, nil)
			p = s.open(p)
			for term := range uint64(30) {
				for range rng.IntN(60) {
					hash := fmt.Sprint(rng.IntN(5))
					res, err := s.Apply(t.Context(), counterOf(hash), p, limiter.Command{Min: 1, Want: 1 + rng.Int64N(8)})
					if err != nil {
						t.Fatal(err)
					}
					if granted[hash] == nil {
						granted[hash] = map[int64]int64{}
					}
					if granted[hash][res.Windows.Open[0].Index] += res.Granted; granted[hash][res.Windows.Open[0].Index] > p.Rates[0].Limit {
						t.Fatalf("seed %d: key %s is granted %d of %d", seed, hash, granted[hash][res.Windows.Open[0].Index], p.Rates[0].Limit)
					}
					<-time.After(time.Duration(rng.IntN(100)) * time.Millisecond)
				}
				var ledger *memory.Ledger
				if rng.IntN(3) == 0 {
					data, _, err := s.Export(unbounded)
					if err != nil {
						t.Fatal(err)
					}
					if ledger, err = memory.Decode(data); err != nil {
						t.Fatal(err)
					}
				}
				s.stop()
				s = a.reign(t, term+2, ledger)
				if rng.IntN(8) == 0 {
					<-time.After(time.Duration(rng.IntN(30)) * time.Hour)
				}
			}
			s.stop()
		})
	}
}

package memory_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

const unbounded = 1 << 30

// epoch is a start of windows of every length that the tests use.
const epoch = limiter.Instant(1_800_000_000_000_000)

func counterOf(hash string) store.Key {
	return store.Key{Scope: store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}, Hash: hash}
}

func perWindow(limit int64, window limiter.Micros) limiter.Params {
	return limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: limit, Window: window}}}
}

func apply(t *testing.T, s *memory.Store, key store.Key, p limiter.Params, c limiter.Command) limiter.Result {
	t.Helper()
	res, err := s.Apply(t.Context(), key, p, c)
	if err != nil {
		t.Fatalf("Apply: %v", err)
	}
	return res
}

func lease(most int64) limiter.Command { return limiter.Command{Min: 1, Want: most} }

// succeed hands the store over to one that starts after the time away.
func succeed(t *testing.T, s *memory.Store, clock *fakeClock, away limiter.Micros) *memory.Store {
	t.Helper()
	data, _, err := s.Export(unbounded)
	if err != nil {
		t.Fatalf("Export: %v", err)
	}
	ledger, err := memory.Decode(data)
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	if ledger.Sealed() != clock.Now() {
		t.Errorf("sealed at %d, want %d", ledger.Sealed(), clock.Now())
	}
	clock.Advance(away)
	return memory.New(memory.Options{Clock: clock.Now, Ledger: ledger})
}

func TestASuccessorKnowsAllGrants(t *testing.T) {
	clock := newFakeClock(epoch - 1)
	s := memory.New(memory.Options{Clock: clock.Now})
	clock.Advance(2)
	minute := perWindow(10, 60*limiter.Second)
	grant := apply(t, s, counterOf("a"), minute, lease(7))

	s = succeed(t, s, clock, 2*limiter.Second)
	if res := apply(t, s, counterOf("a"), minute, lease(10)); res.Granted != 3 {
		t.Errorf("after 7 of 10 the successor grants %d, want 3", res.Granted)
	}
	back := limiter.Command{Op: limiter.Return, Want: 2, Windows: grant.Windows}
	if res := apply(t, s, counterOf("a"), minute, back); res.Granted != 2 {
		t.Errorf("the successor refuses a return of the predecessor's grant: %v", res.Reason)
	}
	if res := apply(t, s, counterOf("never asked"), minute, lease(10)); res.Granted != 10 {
		t.Errorf("a key never asked before gets %d of %v, want the whole limit", res.Granted, res.Reason)
	}
}

// TestSuccessorAnswersAsItsPredecessorWould hands over counters of every algorithm
// and compares the successor with a twin of the predecessor.
func TestSuccessorAnswersAsItsPredecessorWould(t *testing.T) {
	const minute = 60 * limiter.Second
	clock := newFakeClock(epoch.Add(-minute))
	s, twin := memory.New(memory.Options{Clock: clock.Now}), memory.New(memory.Options{Clock: clock.Now})
	clock.Advance(2*minute + limiter.Second/7)
	run := func(s *memory.Store, round int) []limiter.Result {
		var results []limiter.Result
		for i, p := range everyAlgorithm() {
			for j, tenant := range []string{"gold", "silver", "other"} {
				c := limiter.Command{Min: 1, Want: int64(1 + (round+j)%3), Tenant: tenant, First: j == 0}
				results = append(results, apply(t, s, counterOf(fmt.Sprint(i)), p, c))
			}
			back := results[len(results)-1]
			c := limiter.Command{Op: limiter.Return, Want: 1, Tenant: "other", Windows: back.Windows, At: back.Now}
			results = append(results, apply(t, s, counterOf(fmt.Sprint(i)), p, c))
		}
		return results
	}
	for round := range 5 {
		if diff := cmp.Diff(run(twin, round), run(s, round)); diff != "" {
			t.Fatalf("the twins differ:\n%s", diff)
		}
		clock.Advance(limiter.Second / 5)
	}
	s = succeed(t, s, clock, 0)
	for round := range 10 {
		if diff := cmp.Diff(run(twin, round), run(s, round)); diff != "" {
			t.Fatalf("round %d after the hand-over (-predecessor +successor):\n%s", round, diff)
		}
		clock.Advance(limiter.Second / 5)
	}
}

func TestWindowsThatBeganBetweenLeadersGrantNothing(t *testing.T) {
	clock := newFakeClock(epoch - 1)
	s := memory.New(memory.Options{Clock: clock.Now})
	clock.Advance(2)
	second, minute := perWindow(10, limiter.Second), perWindow(10, 60*limiter.Second)

	s = succeed(t, s, clock, limiter.Second+limiter.Second/2)
	if res := apply(t, s, counterOf("a"), second, lease(1)); res.Reason != limiter.Amnesia {
		t.Errorf("in a window that began while nobody served: got %v", res.Reason)
	}
	if res := apply(t, s, counterOf("b"), minute, lease(1)); res.Granted != 1 {
		t.Errorf("in a window that began before: got %v", res.Reason)
	}
	clock.Advance(limiter.Second / 2) // now 2 s after the epoch
	if res := apply(t, s, counterOf("a"), second, lease(1)); res.Granted != 1 {
		t.Errorf("in a window that began after: got %v", res.Reason)
	}

	// A second hand-over keeps the gap of the first as long as its windows may be open.
	s = succeed(t, s, clock, limiter.Second/4)
	longer := perWindow(10, limiter.Second*3/2) // one of them began 1.5 s after the epoch
	if res := apply(t, s, counterOf("c"), longer, lease(1)); res.Reason != limiter.Amnesia {
		t.Errorf("after two hand-overs, in a window of the first gap: got %v", res.Reason)
	}
	if res := apply(t, s, counterOf("b"), minute, lease(1)); res.Granted != 1 {
		t.Errorf("after two hand-overs, in a window older than both: got %v", res.Reason)
	}
}

func TestWithoutALedgerOpenWindowsGrantNothing(t *testing.T) {
	clock := newFakeClock(epoch)
	s := memory.New(memory.Options{Clock: clock.Now})
	if res := apply(t, s, counterOf("a"), perWindow(10, limiter.Second), lease(1)); res.Reason != limiter.Amnesia {
		t.Errorf("in the window of the start: got %v", res.Reason)
	}
	clock.Advance(limiter.Second)
	if res := apply(t, s, counterOf("a"), perWindow(10, limiter.Second), lease(1)); res.Granted != 1 {
		t.Errorf("in the next window: got %v", res.Reason)
	}
}

func TestTheFirstStoreServesTheOpenWindow(t *testing.T) {
	s := memory.New(memory.Options{Clock: newFakeClock(epoch).Now, First: true})
	if res := apply(t, s, counterOf("a"), perWindow(10, limiter.Second), lease(1)); res.Granted != 1 {
		t.Errorf("in the window of the start: got %v", res.Reason)
	}
}

func TestSealedStoreRefuses(t *testing.T) {
	s := memory.New(memory.Options{Clock: newFakeClock(epoch).Now})
	s.Seal()
	s.Seal()
	_, err := s.Apply(t.Context(), counterOf("a"), perWindow(1, limiter.Second), lease(1))
	var unavailable *store.UnavailableError
	if !errors.As(err, &unavailable) || !errors.Is(err, memory.ErrSealed) {
		t.Errorf("error is %v, want ErrSealed in a *store.UnavailableError", err)
	}
}

func TestExportLeavesOutEndedCounters(t *testing.T) {
	clock := newFakeClock(epoch)
	s := memory.New(memory.Options{Clock: clock.Now})
	apply(t, s, counterOf("short"), perWindow(1, limiter.Second), lease(1))
	apply(t, s, counterOf("long"), perWindow(1, 60*limiter.Second), lease(1))
	clock.Advance(2 * limiter.Second)
	data, _, err := s.Export(unbounded)
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := memory.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if ledger.Len() != 1 {
		t.Errorf("%d counters exported, want the 1 that is open", ledger.Len())
	}
}

func TestExportNamesTheSizeItIsTooBigBy(t *testing.T) {
	s := memory.New(memory.Options{Clock: newFakeClock(epoch).Now})
	_, _, err := s.Export(10)
	var tooBig *memory.TooBigError
	if !errors.As(err, &tooBig) || tooBig.Max != 10 || tooBig.Bytes <= 10 {
		t.Errorf("error is %v, want a *TooBigError that names both sizes", err)
	}
}

func TestDecodeRefusesDamagedLedgers(t *testing.T) {
	valid := exportOf(t, "a", "b")
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":             {nil, "empty"},
		"another version":     {append([]byte{2}, valid[1:]...), "version 2"},
		"no gzip stream":      {[]byte{3, 2, 3}, "damaged"},
		"a version alone":     {valid[:1], "damaged"},
		"half a ledger":       {valid[:len(valid)/2], "damaged"},
		"a cut checksum":      {valid[:len(valid)-4], "damaged"},
		"a flipped bit":       {flipped(valid, len(valid)-6), "damaged"},
		"bytes after the end": {append(append([]byte{}, valid...), 0), "damaged"},
	} {
		ledger, err := memory.Decode(c.data)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want one with %q", name, err, c.want)
		}
		if ledger != nil {
			t.Errorf("%s: a ledger came with the error", name)
		}
	}
}

// FuzzDecode checks that no input makes Decode panic, and that what it accepts
// can be served from and handed over again unchanged.
func FuzzDecode(f *testing.F) {
	f.Add(exportOf(f))
	f.Add(exportOf(f, "a"))
	f.Add(exportOf(f, "a", "b", "c"))
	f.Fuzz(func(t *testing.T, data []byte) {
		ledger, err := memory.Decode(data)
		if err != nil {
			return
		}
		clock := newFakeClock(ledger.Sealed())
		n := ledger.Len()
		s := memory.New(memory.Options{Clock: clock.Now, Ledger: ledger})
		if s.Len() != n {
			t.Fatalf("%d counters of %d were taken over", s.Len(), n)
		}
		for _, p := range everyAlgorithm() {
			p.Generation = limiter.MaxGeneration
			serveAnything(t, s, p)
			clock.Advance(limiter.Second / 3)
		}
		again, _, err := s.Export(unbounded)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := memory.Decode(again); err != nil {
			t.Fatalf("an accepted ledger does not survive: %v", err)
		}
	})
}

// serveAnything runs every operation and requires answers that make sense.
func serveAnything(t *testing.T, s *memory.Store, p limiter.Params) {
	t.Helper()
	for _, hash := range []string{"a", "b", "c"} {
		for op := limiter.Take; op <= limiter.Reset; op++ {
			c := limiter.Command{Op: op, Min: 1, Want: 3, Tenant: "gold"}
			res := apply(t, s, counterOf(hash), p, c)
			if res.Granted < 0 || res.Granted > c.Want || res.Remaining < 0 || res.RetryAfter < 0 || res.ResetAfter < 0 || res.Delay < 0 {
				t.Fatalf("%v answers %+v with %+v", p.Algorithm, c, res)
			}
		}
	}
}

// everyAlgorithm returns parameters for each algorithm, and for each that has
// them with tenants or credits.
func everyAlgorithm() []limiter.Params {
	rates := []limiter.Rate{{Limit: 7, Window: limiter.Second}, {Limit: limiter.MaxLimit, Window: limiter.MaxWindow}}
	month := []limiter.Rate{{Limit: 7, Window: limiter.MaxWindow, Monthly: true, Offset: -limiter.MaxOffset}}
	fair := limiter.Fairness{Weights: []limiter.Weight{{Tenant: "gold", Weight: 3}}, Default: 1}
	return []limiter.Params{
		{Rates: rates},
		{Rates: month, Fairness: fair},
		{Rates: rates, Algorithm: limiter.SlidingWindow, Buckets: 10, Lifetime: limiter.Second},
		{Rates: rates, Algorithm: limiter.SlidingLog, Any: true},
		{Rates: rates[:1], Algorithm: limiter.TokenBucket, Lifetime: limiter.Second / 2},
		{Rates: rates[:1], Algorithm: limiter.GCRA},
		{Rates: rates[:1], Algorithm: limiter.LeakyBucket, MaxDelay: limiter.Second},
		{Rates: rates, Any: true},
	}
}

func exportOf(t testing.TB, hashes ...string) []byte {
	t.Helper()
	s := memory.New(memory.Options{Clock: newFakeClock(epoch).Now})
	for i, p := range everyAlgorithm() {
		p.Generation = 3
		for _, h := range hashes {
			if _, err := s.Apply(t.Context(), counterOf(h+fmt.Sprint(i)), p, lease(1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, h := range hashes {
		if _, err := s.Apply(t.Context(), counterOf(h), everyAlgorithm()[0], lease(1)); err != nil {
			t.Fatal(err)
		}
	}
	data, _, err := s.Export(unbounded)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func flipped(data []byte, at int) []byte {
	data = append([]byte{}, data...)
	data[at] ^= 1
	return data
}

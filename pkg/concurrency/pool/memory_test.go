package pool_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestARestoredMemoryAnswersAsBefore restores it at random times and compares what
// both go on to answer, before anything expires.
func TestARestoredMemoryAnswersAsBefore(t *testing.T) {
	for seed := range uint64(100) {
		d := rand.New(rand.NewPCG(seed, 5))
		p := someParams(d, 1)
		p.TTL, p.Quarantine = limiter.Second, limiter.Second
		s := pool.Begin(2, 0, p)
		for range 100 {
			step(t, s, p, 0, someCommand(d, s.Memory()))
		}
		r, err := pool.Restore(s.Memory(), 50)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for range 100 {
			c := someCommand(d, s.Memory())
			if want, got := step(t, s, p, 0, c), step(t, r, p, 50, c); got != want {
				t.Fatalf("seed %d: %+v is answered\n%s", seed, c, cmp.Diff(want, got))
			}
		}
		if diff := cmp.Diff(s.Memory(), r.Memory()); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

// TestARestoredShareLastsInFull: how much of it was left on the clock before says
// nothing on this one.
func TestARestoredShareLastsInFull(t *testing.T) {
	p := fixed(8)
	p.TTL = 100
	s := pool.New(2)
	step(t, s, p, 0, beat("a", 1, 0, 0, 0))
	step(t, s, p, 90, beat("b", 1, 0, 0, 0))
	r, err := pool.Restore(s.Memory(), 7)
	if err != nil {
		t.Fatal(err)
	}
	if g := step(t, r, p, 106, beat("b", 2, 2, 0, 0)); g.Share != 0 {
		t.Errorf("b got %d, of what a may use", g.Share)
	}
	if g := step(t, r, p, 107, beat("b", 3, 2, 0, 0)); g.Share != 8 {
		t.Errorf("b got %d", g.Share)
	}
	p.TTL, p.Generation = 10, 2
	step(t, s, p, 91, beat("b", 2, 2, 0, 0))
	if r, err = pool.Restore(s.Memory(), 0); err != nil {
		t.Fatal(err)
	}
	if got := r.Memory().Holders[1].Expires; got != 99 {
		t.Errorf("b's share, issued for longer, lasts %d more, want 99", got)
	}
}

// TestARestoredQuarantineStillEndsShares hands over before the holder confirmed a
// share, and after.
func TestARestoredQuarantineStillEndsShares(t *testing.T) {
	p := fixed(8)
	p.TTL, p.Quarantine = 100, 100
	for name, tc := range map[string]struct {
		term int64
		want limiter.Micros
	}{
		"not confirmed": {1, 70},
		"confirmed":     {2, 100},
	} {
		t.Run(name, func(t *testing.T) {
			s := pool.Begin(2, 0, p)
			step(t, s, p, 10, of(1, beat("a", 1, 9, 5, 0)))
			step(t, s, p, 20, of(tc.term, beat("a", 2, 1, 5, 0)))
			r, err := pool.Restore(s.Memory(), 1000)
			if err != nil {
				t.Fatal(err)
			}
			if g := step(t, r, p, 1010, of(tc.term, beat("a", 3, 1, 5, 0))); g.TTL != tc.want || g.Quarantined != 70 {
				t.Errorf("got %+v, want a TTL of %d", g, tc.want)
			}
		})
	}
}

func TestAMemoryThatNoStateHasIsRefused(t *testing.T) {
	for field, spoil := range map[string]func(*pool.Memory){
		"Term":        func(m *pool.Memory) { m.Term = 0 },
		"Generation":  func(m *pool.Memory) { m.Generation = 0 },
		"Max":         func(m *pool.Memory) { m.Params.Max = 0 },
		"Limit":       func(m *pool.Memory) { m.Limit = -1 },
		"Bound":       func(m *pool.Memory) { m.Bound = -1 },
		"Quarantined": func(m *pool.Memory) { m.Quarantined = -1 },
		"Holders":     func(m *pool.Memory) { m.Holders = append(m.Holders, m.Holders[0]) },
		"Holder":      func(m *pool.Memory) { m.Holders[0].Holder = "" },
		"Seq":         func(m *pool.Memory) { m.Holders[0].Seq = 0 },
		"Share":       func(m *pool.Memory) { m.Holders[0].Share = -1 },
		"Unacked":     func(m *pool.Memory) { m.Holders[0].Unacked = 7 },
		"Held":        func(m *pool.Memory) { m.Holders[0].Held = -1 },
		"InFlight":    func(m *pool.Memory) { m.Holders[0].InFlight = -1 },
		"Peak":        func(m *pool.Memory) { m.Holders[0].Peak = -1 },
		"Expires":     func(m *pool.Memory) { m.Holders[0].Expires = pool.MaxTTL + 1 },
	} {
		s := pool.New(2)
		step(t, s, fixed(8), 0, beat("a", 1, 0, 0, 0))
		m := s.Memory()
		spoil(&m)
		_, err := pool.Restore(m, 0)
		if invalid := (*pool.InvalidError)(nil); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("the error is %v, want one that names %s", err, field)
		}
	}
	if _, err := pool.Restore(pool.New(1).Memory(), 0); err != nil {
		t.Errorf("of a pool that nobody asked for yet: %v", err)
	}
}

func TestInvalidCommandsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*pool.Params, *pool.Command)
		want   string
	}{
		"no op":                 {func(_ *pool.Params, c *pool.Command) { c.Op = 3 }, "Op has the value 3, which has no meaning: choose a named one"},
		"no name":               {func(_ *pool.Params, c *pool.Command) { c.Holder = "" }, "Holder has 0 bytes: name the process in 1 to 256"},
		"no number":             {func(_ *pool.Params, c *pool.Command) { c.Seq = 0 }, "Seq is 0: choose 1 to 4503599627370496"},
		"a term below 0":        {func(_ *pool.Params, c *pool.Command) { c.Term = -1 }, "Term is -1: choose 0 to 4503599627370496"},
		"a share below 0":       {func(_ *pool.Params, c *pool.Command) { c.Applied = -1 }, "Applied is -1: choose 0 to 4503599627370496"},
		"too much held":         {func(_ *pool.Params, c *pool.Command) { c.Held = 1_000_001 }, "Held is 1000001: choose 0 to 1000000"},
		"too much in flight":    {func(_ *pool.Params, c *pool.Command) { c.InFlight = 1 << 32 }, "InFlight is 4294967296: choose 0 to 2147483648"},
		"a peak below it":       {func(_ *pool.Params, c *pool.Command) { c.InFlight = 2 }, "Peak is 0: choose 2 to 2147483648"},
		"a limit below 0":       {func(_ *pool.Params, c *pool.Command) { c.Limit = -1 }, "Limit is -1: choose 0 to 1000000"},
		"leaving while at work": {func(_ *pool.Params, c *pool.Command) { c.Op, c.InFlight, c.Peak = pool.Leave, 1, 1 }, "InFlight is 1: leave when nothing is in flight any more"},
		"no least limit":        {func(p *pool.Params, _ *pool.Command) { p.Min = 0 }, "Min is 0: choose 1 to 1000000"},
		"limits crossed":        {func(p *pool.Params, _ *pool.Command) { p.Max = 7 }, "Max is 7: choose 8 to 1000000"},
		"a start outside":       {func(p *pool.Params, _ *pool.Command) { p.Initial = 9 }, "Initial is 9: choose 8 to 8"},
		"no aggregate":          {func(p *pool.Params, _ *pool.Command) { p.Aggregate = 2 }, "Aggregate has the value 2, which has no meaning: choose a named one"},
		"no allocation":         {func(p *pool.Params, _ *pool.Command) { p.Allocation = 2 }, "Allocation has the value 2, which has no meaning: choose a named one"},
		"no handoff":            {func(p *pool.Params, _ *pool.Command) { p.Handoff = 2 }, "Handoff has the value 2, which has no meaning: choose a named one"},
		"no TTL":                {func(p *pool.Params, _ *pool.Command) { p.TTL = 0 }, "TTL is 0: choose 1 to 3600000000"},
		"an endless wait":       {func(p *pool.Params, _ *pool.Command) { p.Quarantine = 3600_000_001 }, "Quarantine is 3600000001: choose 0 to 3600000000"},
		"a generation below 0":  {func(p *pool.Params, _ *pool.Command) { p.Generation = -1 }, "Generation is -1: choose 0 to 4503599627370496"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p, c := pool.New(2), fixed(8), beat("a", 1, 0, 0, 0)
			tc.change(&p, &c)
			_, err := s.Step(p, 0, c)
			if err == nil || err.Error() != tc.want {
				t.Errorf("the error is %v, want %s", err, tc.want)
			}
			if s.Holders() != 0 {
				t.Error("the memory changed")
			}
		})
	}
}

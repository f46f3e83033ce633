package pool_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A line is one command of a history and the share that it is answered with.
type line struct {
	at    limiter.Instant
	c     pool.Command
	share int64
}

// beat returns a command of a holder that enforces a share of term 2.
func beat(holder string, seq, applied, held, inFlight int64) pool.Command {
	c := pool.Command{Op: pool.Beat, Holder: holder, Seq: seq, Applied: applied, Held: held, InFlight: inFlight, Peak: inFlight}
	if applied > 0 {
		c.Term = 2
	}
	return c
}

// of returns the command of a holder that enforces a share of another term.
func of(term int64, c pool.Command) pool.Command {
	c.Term = term
	return c
}

func leave(holder string, seq int64) pool.Command {
	return pool.Command{Op: pool.Leave, Holder: holder, Seq: seq}
}

// TestHistories shows what each rule of Step is for. The limit is 8 and shares last
// 100.
func TestHistories(t *testing.T) {
	p := fixed(8)
	p.TTL, p.Quarantine = 100, 100
	quarantined := func() *pool.State { return pool.Begin(2, 0, p) }
	for name, tc := range map[string]struct {
		begin func() *pool.State
		lines []line
	}{
		"what was issued is reserved until a later share is confirmed": {lines: []line{
			{0, beat("a", 1, 0, 0, 0), 8},
			{1, beat("b", 1, 0, 0, 0), 0},
			{2, beat("a", 2, 1, 8, 0), 4},
			{3, beat("b", 2, 2, 0, 0), 0},
			{4, beat("a", 3, 1, 8, 0), 4}, // of the share before
			{5, beat("b", 3, 2, 0, 0), 0},
			{6, beat("a", 4, 3, 4, 0), 4},
			{7, beat("b", 4, 2, 0, 0), 4},
		}},
		"what is in flight above a share is reserved": {lines: []line{
			{0, beat("a", 1, 0, 0, 0), 8},
			{1, beat("b", 1, 0, 0, 0), 0},
			{2, beat("a", 2, 1, 8, 7), 4},
			{3, beat("a", 3, 3, 4, 6), 4},
			{4, beat("b", 2, 2, 0, 0), 2},
		}},
		"a repeated command does not put the expiry off": {lines: []line{
			{0, beat("a", 1, 0, 0, 0), 8},
			{90, beat("a", 1, 0, 0, 0), 8},
			{99, beat("b", 1, 0, 0, 0), 0},
			{100, beat("b", 2, 2, 0, 0), 8},
		}},
		"a beat puts the expiry off": {lines: []line{
			{0, beat("a", 1, 0, 0, 0), 8},
			{90, beat("a", 2, 1, 8, 0), 8},
			{100, beat("b", 1, 0, 0, 0), 0},
		}},
		"who beats in time or not is not evicted by its own beat": {lines: []line{
			{0, beat("a", 1, 0, 0, 0), 8},
			{500, beat("a", 2, 1, 8, 8), 8},
			{501, beat("b", 1, 0, 0, 0), 0},
		}},
		"an expired share is not sent again": {lines: []line{
			{0, beat("a", 5, 0, 0, 0), 8},
			{0, beat("b", 1, 0, 0, 0), 0},
			{150, beat("a", 1, 0, 0, 0), 8}, // a process that numbers from 1 again, all by itself
		}},
		"a clock that goes back stands still": {lines: []line{
			{150, beat("a", 1, 0, 0, 0), 8},
			{0, beat("b", 1, 0, 0, 0), 0},
			{249, beat("a", 2, 1, 8, 0), 4},
			{250, beat("c", 1, 0, 0, 0), 0}, // b, which beat at 150, is gone
			{250, beat("a", 3, 3, 4, 0), 4},
			{250, beat("c", 2, 4, 0, 0), 4},
		}},
		"what a newcomer holds and has in flight is reserved": {lines: []line{
			{0, of(1, beat("a", 1, 9, 5, 1)), 8},
			{1, beat("b", 1, 0, 0, 0), 0},
			{2, of(1, beat("c", 1, 9, 0, 3)), 0},
			{3, beat("a", 2, 1, 0, 0), 3},
			{4, beat("a", 3, 4, 3, 0), 3},
			{5, beat("b", 2, 2, 0, 0), 2}, // c has 3 in flight
		}},
		"what a newcomer holds of a memory before is reserved": {lines: []line{
			{0, beat("a", 1, 0, 0, 0), 8},
			{1, of(1, beat("b", 1, 9, 5, 0)), 0},
			{2, beat("a", 2, 1, 8, 0), 3},
		}},
		"what one who comes back holds is reserved": {lines: []line{
			{0, beat("a", 1, 0, 0, 0), 8},
			{1, beat("b", 1, 1, 5, 0), 0},
			{2, beat("a", 2, 1, 8, 0), 3},
		}},
		"a quarantine lets holders keep what they hold": {begin: quarantined, lines: []line{
			{0, of(1, beat("a", 7, 9, 3, 0)), 3},
			{1, beat("new", 1, 0, 0, 0), 0},
			{2, of(1, beat("b", 7, 9, 2, 5)), 2},
			{3, of(2, beat("a", 8, 1, 3, 0)), 3},
			{99, of(2, beat("a", 9, 1, 3, 0)), 3},
			{99, of(2, beat("new", 2, 2, 0, 0)), 0},
			{100, of(2, beat("new", 3, 2, 0, 0)), 4}, // b did not confirm
		}},
		"a quarantine gives nothing back to who held more before": {begin: quarantined, lines: []line{
			{0, of(1, beat("a", 7, 9, 3, 0)), 3},
			{1, of(1, beat("a", 8, 9, 1, 0)), 1},
			{2, of(2, beat("a", 9, 2, 1, 0)), 1},
		}},
		"a later share of the memory before is reserved": {begin: quarantined, lines: []line{
			{0, of(1, beat("a", 7, 9, 1, 0)), 1},
			{50, of(1, beat("a", 8, 10, 4, 0)), 4},
			{60, of(2, beat("a", 9, 1, 1, 0)), 1}, // of the first answer
			{61, of(2, beat("b", 1, 0, 0, 0)), 0},
			{101, of(2, beat("b", 2, 4, 0, 0)), 4},
			{102, of(2, beat("c", 1, 0, 0, 0)), 0}, // 4 are a's, 4 b's
		}},
		"who leaves frees its share": {lines: []line{
			{0, beat("a", 1, 0, 0, 0), 8},
			{1, leave("a", 2), 0},
			{2, leave("a", 3), 0},
			{3, beat("b", 1, 0, 0, 0), 8},
		}},
		"a late leave frees nothing": {lines: []line{
			{0, beat("a", 2, 0, 0, 0), 8},
			{1, leave("a", 1), 8},
			{3, beat("b", 1, 0, 0, 0), 0},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := pool.New(2)
			if tc.begin != nil {
				s = tc.begin()
			}
			for i, l := range tc.lines {
				g, err := s.Step(p, l.at, l.c)
				if err != nil {
					t.Fatalf("line %d: %v", i, err)
				}
				if g.Share != l.share {
					t.Errorf("line %d: the share is %d, want %d: %+v", i, g.Share, l.share, s.Memory())
				}
			}
		})
	}
}

func step(t *testing.T, s *pool.State, p pool.Params, now limiter.Instant, c pool.Command) pool.Grant {
	t.Helper()
	g, err := s.Step(p, now, c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGenerationsRiseOnlyWithANewShareAndAreNeverUsedTwice(t *testing.T) {
	s, p := pool.New(1), fixed(8)
	first := step(t, s, p, 0, beat("a", 1, 0, 0, 0))
	if again := step(t, s, p, 1, beat("a", 2, 0, 0, 0)); again.Generation != first.Generation {
		t.Errorf("the same share has the generations %d and %d", first.Generation, again.Generation)
	}
	step(t, s, p, 2, leave("a", 3))
	back := step(t, s, p, 3, beat("a", 4, 0, 0, 0))
	if back.Generation <= first.Generation {
		t.Errorf("generation %d after %d", back.Generation, first.Generation)
	}
	if none := step(t, s, p, 4, beat("b", 1, 0, 0, 0)); none.Share != 0 || none.Generation <= back.Generation {
		t.Errorf("a share of nothing has a generation of its own, too: %+v", none)
	}
}

func TestAConfirmationOfAnotherTermIsNone(t *testing.T) {
	s, p := pool.New(5), fixed(8)
	step(t, s, p, 0, beat("a", 1, 0, 0, 0))
	step(t, s, p, 1, beat("b", 1, 0, 0, 0))
	step(t, s, p, 2, of(5, beat("a", 2, 1, 8, 0)))
	step(t, s, p, 3, of(4, beat("a", 3, 99, 0, 0)))
	if g := step(t, s, p, 4, beat("b", 2, 0, 0, 0)); g.Share != 0 {
		t.Errorf("b got %d", g.Share)
	}
}

func TestAnOldMemoryGrantsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		c    pool.Command
		want bool
	}{
		"a later term":                           {of(3, beat("b", 1, 1, 0, 0)), true},
		"a later term of one that wants to go":   {of(3, leave("a", 9)), true},
		"a later term in a late command":         {of(3, beat("a", 1, 1, 0, 0)), true},
		"a share that was never issued":          {beat("b", 1, 3, 0, 0), true},
		"a share that the holder was not issued": {beat("a", 9, 2, 0, 0), true},
		"the newest share":                       {beat("a", 9, 1, 8, 0), false},
		"a share of a holder that is forgotten":  {beat("c", 9, 2, 8, 0), false},
		"an older term":                          {of(1, beat("a", 9, 7, 8, 0)), false},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := pool.New(2), fixed(8)
			step(t, s, p, 0, beat("a", 2, 0, 0, 0))
			step(t, s, p, 0, beat("d", 1, 0, 0, 0))
			before := s.Memory()
			_, err := s.Step(p, 10, tc.c)
			behind := (*pool.BehindError)(nil)
			if errors.As(err, &behind) != tc.want || tc.want && behind.Term != tc.c.Term {
				t.Errorf("the error is %v", err)
			}
			if tc.want && cmp.Diff(before, s.Memory()) != "" {
				t.Error("the memory changed")
			}
		})
	}
}

func TestAQuarantineWaitsForTheLongestTTL(t *testing.T) {
	p := fixed(8)
	p.TTL, p.Quarantine = 100, 100
	s := pool.Begin(2, 1000, p)
	step(t, s, p, 1010, beat("a", 1, 0, 0, 0))
	p.Generation, p.TTL, p.Quarantine = 2, 300, 300
	if g := step(t, s, p, 1020, beat("a", 2, 0, 0, 0)); g.Quarantined != 280 {
		t.Errorf("quarantined for %d more, want 280", g.Quarantined)
	}
	if g := step(t, s, p, 1300, beat("a", 3, 0, 0, 0)); g.Quarantined != 0 || g.Share != 8 {
		t.Errorf("got %+v", g)
	}
	p.Generation, p.Quarantine = 3, 900
	if g := step(t, s, p, 1301, beat("a", 4, 0, 0, 0)); g.Quarantined != 0 {
		t.Error("a quarantine that is over begins again")
	}
}

// TestAShareIsKeptAsLongAsItWasIssuedFor lowers the TTL while a longer share is in
// use.
func TestAShareIsKeptAsLongAsItWasIssuedFor(t *testing.T) {
	p := fixed(8)
	p.TTL = 500
	s := pool.New(2)
	step(t, s, p, 0, beat("a", 1, 0, 0, 0))
	p.TTL, p.Generation = 10, 2
	if g := step(t, s, p, 1, beat("a", 2, 1, 8, 0)); g.TTL != 499 {
		t.Errorf("the share lasts %d, want what is left of 500", g.TTL)
	}
	if g := step(t, s, p, 499, beat("b", 1, 0, 0, 0)); g.Share != 0 || g.TTL != 10 {
		t.Errorf("got %+v while the first may use its share", g)
	}
	if g := step(t, s, p, 500, beat("b", 2, 2, 0, 0)); g.Share != 8 {
		t.Errorf("got %+v", g)
	}
}

func TestAShareSentAgainLastsAsLongAsBefore(t *testing.T) {
	s, p := pool.New(2), fixed(8)
	p.TTL = 100
	c := beat("a", 1, 0, 0, 0)
	want := step(t, s, p, 0, c)
	got := step(t, s, p, 30, c)
	want.TTL, want.Occupied, want.Bound = 70, 8, 8
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestOccupied reports overshoots and nothing else.
func TestOccupied(t *testing.T) {
	p := fixed(8)
	p.Min, p.Initial = 1, 8
	infer := func(c pool.Command, limit int64) pool.Command {
		c.Limit = limit
		return c
	}
	peak := func(c pool.Command, peak int64) pool.Command {
		c.Peak = peak
		return c
	}
	type seen struct {
		c               pool.Command
		occupied, bound int64
	}
	for name, history := range map[string][]seen{
		"shares in use are not": {
			{beat("a", 1, 0, 0, 0), 0, 8},
			{beat("a", 2, 1, 8, 8), 8, 8},
		},
		"more than a share is one": {
			{beat("a", 1, 0, 0, 0), 0, 8},
			{beat("a", 2, 1, 8, 11), 11, 8},
			{peak(beat("a", 3, 1, 8, 5), 12), 12, 8},
			{peak(beat("a", 4, 1, 8, 5), 12), 8, 8}, // known already
		},
		"work without a share is one when the rest is taken": {
			{beat("a", 1, 0, 0, 0), 0, 8},
			{beat("b", 1, 0, 0, 3), 11, 8},
			{beat("a", 2, 1, 8, 0), 11, 8},
			{beat("b", 2, 2, 0, 0), 11, 8},
			{beat("a", 3, 3, 4, 0), 8, 8},
		},
		"a limit that falls is not one": {
			{beat("a", 1, 0, 0, 0), 0, 8},
			{infer(beat("a", 2, 1, 8, 8), 5), 8, 8},
			{infer(beat("a", 3, 2, 5, 8), 5), 8, 8},
			{infer(beat("a", 4, 2, 5, 6), 2), 8, 8},
			{infer(beat("a", 5, 3, 2, 6), 2), 6, 8},
			{infer(beat("a", 6, 3, 2, 2), 2), 6, 8},
			{infer(beat("a", 7, 3, 2, 3), 2), 3, 2},
		},
		"work that ended before the last answer is not one": {
			{beat("a", 1, 0, 0, 0), 0, 8},
			{beat("b", 1, 0, 0, 0), 8, 8},
			{beat("a", 2, 1, 8, 8), 8, 8},
			{peak(beat("a", 3, 3, 4, 4), 8), 8, 8},
			{peak(beat("b", 2, 2, 0, 0), 0), 4, 8},
			{peak(beat("a", 4, 3, 4, 0), 8), 8, 8}, // the answer to 3 did not arrive
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := pool.New(2)
			for i, h := range history {
				g := step(t, s, p, 0, h.c)
				if g.Occupied != h.occupied || g.Bound != h.bound {
					t.Errorf("line %d: occupied %d of %d, want %d of %d", i, g.Occupied, g.Bound, h.occupied, h.bound)
				}
			}
		})
	}
}

// TestReportAndReallocateAreStep applies the halves of Step at different instants of
// a history.
func TestReportAndReallocateAreStep(t *testing.T) {
	whole, halves, p := pool.New(2), pool.New(2), fixed(8)
	for i, c := range []pool.Command{
		beat("a", 1, 0, 0, 0), beat("b", 1, 0, 0, 0), beat("a", 2, 1, 8, 0), beat("a", 2, 1, 8, 0), beat("a", 3, 3, 4, 0),
		beat("b", 2, 2, 0, 0), leave("b", 3),
	} {
		want := step(t, whole, p, limiter.Instant(i), c)
		share, err := halves.Report(p, limiter.Instant(i), c)
		if err != nil {
			t.Fatal(err)
		}
		if !share {
			continue
		}
		if got := halves.Reallocate(c.Holder); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if diff := cmp.Diff(whole.Memory(), halves.Memory()); diff != "" {
		t.Error(diff)
	}
}

// TestACloneSharesNothing lets a clone go its own way, and compares the original with
// one that was never cloned.
func TestACloneSharesNothing(t *testing.T) {
	for seed := range uint64(50) {
		d := rand.New(rand.NewPCG(seed, 7))
		p := someParams(d, 1)
		p.TTL, p.Allocation = 20, pool.DemandProportional
		s, twin, now := pool.New(2), pool.New(2), limiter.Instant(0)
		var clone *pool.State
		for i := range 300 {
			if i%30 == 0 {
				clone = s.Clone()
			}
			step(t, clone, p, now+limiter.Instant(d.Int64N(9)), someCommand(d, clone.Memory()))
			now += limiter.Instant(d.Int64N(3))
			c := someCommand(d, s.Memory())
			if got, want := step(t, s, p, now, c), step(t, twin, p, now, c); got != want {
				t.Fatalf("seed %d, step %d: the original answers\n%s", seed, i, cmp.Diff(want, got))
			}
		}
	}
}

func TestAShareThatIsTooLargeForTheLimitIsLowered(t *testing.T) {
	p := fixed(8)
	s := pool.New(2)
	step(t, s, p, 0, beat("a", 1, 0, 0, 0))
	p.Min, p.Max, p.Initial, p.Generation = 3, 3, 3, 2
	if g := step(t, s, p, 1, beat("a", 2, 1, 8, 8)); g.Share != 3 || g.Bound != 8 {
		t.Errorf("got %+v", g)
	}
	p.Generation = 1
	p.Min, p.Max, p.Initial = 8, 8, 8
	if g := step(t, s, p, 2, beat("a", 3, 2, 3, 8)); g.Share != 3 {
		t.Errorf("an older configuration counts: %+v", g)
	}
}

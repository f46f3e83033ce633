package store_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/quick"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

const (
	second  = int64(1_000_000_000) // of a local clock
	instant = limiter.Instant(1_790_000_000_000_000)
)

func TestAFloor(t *testing.T) {
	behind := limiter.Result{Reason: limiter.ClockBehind, Now: instant - 5_000_000, RetryAfter: 5_000_000}
	for name, c := range map[string]struct {
		do   func(*store.Floor)
		at   int64
		want limiter.Instant
	}{
		"is nothing before the first reply": {
			func(*store.Floor) {}, 9 * second, 0,
		},
		"is what the reply says when it comes": {
			func(f *store.Floor) { f.Observe(instant, second) }, second, instant,
		},
		"is that for a command that was begun before": {
			func(f *store.Floor) { f.Observe(instant, 2*second) }, second, instant,
		},
		"grows more slowly than the local clock by a thousandth": {
			func(f *store.Floor) { f.Observe(instant, second) }, 11 * second, instant + 9_990_000,
		},
		"loses the part of a thousandth, too": {
			func(f *store.Floor) { f.Observe(instant, second) }, second + 1_999, instant,
		},
		"follows a newer reply": {
			func(f *store.Floor) { f.Observe(instant, second); f.Observe(instant+70_000_000, 2*second) },
			2 * second, instant + 70_000_000,
		},
		"does not follow a reply that was long on its way": {
			func(f *store.Floor) { f.Observe(instant, second); f.Observe(instant+1, 11*second) },
			11 * second, instant + 9_990_000,
		},
		"does not go back": {
			func(f *store.Floor) { f.Observe(instant, second); f.Observe(instant-60_000_000, 2*second) },
			2 * second, instant + 999_000,
		},
		"stands still while the store's clock is behind": {
			func(f *store.Floor) {
				f.Observe(instant-20_000_000, second)
				f.Answered(limiter.Command{}, behind, 2*second)
			},
			100 * second, instant,
		},
		"stands still at what the store knew, when the holder knew nothing": {
			func(f *store.Floor) { f.Answered(limiter.Command{}, behind, 2*second) }, 100 * second, instant,
		},
		"stays at the newest of those that found the clock behind": {
			func(f *store.Floor) { f.Answered(limiter.Command{}, behind, second); f.Freeze(instant-1, 0) }, 100 * second, instant,
		},
		"stands still until the clock has caught up": {
			func(f *store.Floor) { f.Answered(limiter.Command{}, behind, second); f.Observe(instant-1, 2*second) },
			100 * second, instant,
		},
		"goes on from when the clock has caught up": {
			func(f *store.Floor) {
				f.Answered(limiter.Command{}, behind, second)
				f.Answered(limiter.Command{}, limiter.Result{Reason: limiter.Exhausted, Now: instant}, 2*second)
			},
			12 * second, instant + 9_990_000,
		},
		"stands still while another process takes the clock over": {
			func(f *store.Floor) { f.Observe(instant, second); f.Pause() }, 100 * second, instant,
		},
		"goes on from the reply of that process": {
			func(f *store.Floor) { f.Observe(instant, second); f.Pause(); f.Observe(instant+7, 90*second) },
			100 * second, instant + 7 + 9_990_000,
		},
		"keeps what the clock had reached before it was behind": {
			func(f *store.Floor) { f.Observe(instant+7, second); f.Answered(limiter.Command{}, behind, 2*second) },
			100 * second, instant + 7,
		},
		"does not take a caller's floor for the store's": {
			func(f *store.Floor) {
				f.Observe(instant-5_000_000, 2*second)
				f.Answered(limiter.Command{Floor: instant}, behind, 2*second)
			},
			12 * second, instant + 4_990_000,
		},
		"stands still when a caller's floor hides that the store's clock is behind": {
			func(f *store.Floor) {
				f.Observe(instant-4_000_000, 2*second)
				f.Answered(limiter.Command{Floor: instant}, behind, 2*second)
			},
			100 * second, instant - 4_000_000,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var f store.Floor
			c.do(&f)
			if got := f.At(c.at); got != c.want {
				t.Errorf("got %d, want %d (%+d)", got, c.want, got-c.want)
			}
		})
	}
}

func TestAFloorRemembersHowFarTheClockWasBehind(t *testing.T) {
	var f store.Floor
	f.Observe(instant, second)
	if got := f.Behind(); got != 0 {
		t.Errorf("before: %d, want 0", got)
	}
	f.Freeze(instant+5, 0)
	f.Observe(instant+9, 2*second)
	if got := f.Behind(); got != instant+5 {
		t.Errorf("when the clock has caught up: %d, want %d", got, instant+5)
	}
}

// TestAFloorIsReachedWhenACommandArrives asks a store whose clock runs by a thousandth
// faster or slower than the holder's, over a network of any delay.
func TestAFloorIsReachedWhenACommandArrives(t *testing.T) {
	reached := func(seed uint64) bool {
		rng := rand.New(rand.NewPCG(seed, 0))
		var f store.Floor
		slow := rng.Int64N(2*second/1000) - second/1000
		shows := func(local int64) limiter.Instant {
			return instant.Add(limiter.Micros((local - local/second*slow - local%second*slow/second) / 1000))
		}
		local := rng.Int64N(second)
		for range 100 {
			local += rng.Int64N(1 + rng.Int64N(60*second))
			floor := f.At(local)
			local += rng.Int64N(1 + rng.Int64N(second))
			now := shows(local)
			if now < floor {
				t.Logf("seed %d: the clock shows %d when a command of floor %d arrives", seed, now, floor)
				return false
			}
			local += rng.Int64N(1 + rng.Int64N(second))
			f.Answered(limiter.Command{}, limiter.Result{Now: now}, local)
		}
		return true
	}
	if err := quick.Check(reached, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
}

// TestALookAtAClock looks at a clock that goes on, is behind, and has caught up.
func TestALookAtAClock(t *testing.T) {
	r := store.Reading{}.Looked(5e12, 0, second/1000)
	late := r.Looked(5e12+10e6, 10*second, 11*second) // decided long before it was received
	if late.Behind() != 0 || late.At(11*second) > 5e12+11e6 {
		t.Errorf("a slow answer: behind %d, at %d", late.Behind(), late.At(11*second))
	}
	back := r.Looked(5e12+1e6, 10*second, 11*second)
	if got := back.At(100 * second); got < 5e12+9.98e6 || got > 5e12+10e6 {
		t.Errorf("the floor of a clock that is behind is %d", got)
	}
	if got := back.Behind(); got < 5e12+11e6 || got > 5e12+11.02e6 {
		t.Errorf("it may have shown %d before", got)
	}
	if got := back.Looked(5e12+20e6, 20*second, 20*second); got.At(21*second) <= 5e12+20e6 || got.Behind() != back.Behind() {
		t.Errorf("when it has caught up the floor is %d, behind %d", got.At(21*second), got.Behind())
	}
}

// TestGrantsThatAnotherMemoryForgot has memories of a store answer one after the other.
func TestGrantsThatAnotherMemoryForgot(t *testing.T) {
	var none store.Recollection
	if got := none.Forgot(7); got != 7 {
		t.Errorf("who knows nothing takes the memory of 7 to begin at %d", got)
	}
	known := none.Answered(100, 500)
	known.Behind = 600
	for begun, want := range map[limiter.Instant]limiter.Instant{100: 100, 300: 601, 700: 700} {
		if got := known.Forgot(begun); got != want {
			t.Errorf("the memory of %d knows what was granted since %d, want %d", begun, got, want)
		}
	}
	known.Behind = 0
	next := known.Answered(300, 310)
	if got := next.Forgot(300); got != 501 {
		t.Errorf("once it has answered: since %d, want 501", got)
	}
	if got := next.Answered(300, 400).Forgot(350); got != 501 {
		t.Errorf("a third one: since %d, want 501", got)
	}
}

// TestMemoriesThatABirthVouchesFor has memories answer one after the other.
func TestMemoriesThatABirthVouchesFor(t *testing.T) {
	const first, second, third = 100, 200, 300
	for _, c := range []struct {
		answered []limiter.Instant
		vouched  []limiter.Instant
	}{
		{nil, []limiter.Instant{first, second, third}},
		{[]limiter.Instant{first}, []limiter.Instant{first, second, third}},
		{[]limiter.Instant{first, first, second}, []limiter.Instant{second, third}},
		{[]limiter.Instant{first, second, first}, nil}, // what comes next may have granted before
		{[]limiter.Instant{first, second, first, second}, nil},
		{[]limiter.Instant{first, second, first, second, third}, []limiter.Instant{third}},
	} {
		var known store.Recollection
		for _, begun := range c.answered {
			known = known.Answered(begun, 1000)
		}
		var vouched []limiter.Instant
		for _, begun := range []limiter.Instant{first, second, third} {
			if known.Vouches(begun) {
				vouched = append(vouched, begun)
			}
		}
		if !slices.Equal(vouched, c.vouched) {
			t.Errorf("after %v births in %v are believed, want %v", c.answered, vouched, c.vouched)
		}
	}
}

package limiter_test

import (
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// kinds are a rate of every kind of windows.
func kinds() map[string]limiter.Rate {
	week := 7 * limiter.Day
	return map[string]limiter.Rate{
		"the shortest":                      rate(1, limiter.MinWindow),
		"a second":                          rate(1, limiter.Second),
		"the longest":                       rate(1, limiter.MaxWindow),
		"a week that began before 1970":     {Limit: 1, Window: week, Offset: 3 * limiter.Day},
		"a week that began after":           {Limit: 1, Window: week, Offset: -3 * limiter.Day},
		"the shortest, far behind":          {Limit: 1, Window: limiter.MinWindow, Offset: -limiter.MaxOffset},
		"the shortest, far ahead":           {Limit: 1, Window: limiter.MinWindow, Offset: limiter.MaxOffset},
		"a month":                           {Limit: 1, Window: limiter.MaxWindow, Monthly: true},
		"a month, behind":                   {Limit: 1, Window: limiter.MaxWindow, Monthly: true, Offset: -14 * 3600 * limiter.Second},
		"a month, ahead":                    {Limit: 1, Window: limiter.MaxWindow, Monthly: true, Offset: 14 * 3600 * limiter.Second},
		"a second of a bucket with a burst": {Limit: 5, Window: limiter.Second, Burst: 9},
	}
}

// TestIndicesAreOfTheWindowsThatAClockShows: every window of an instant within the
// bounds is among them, and both ends are windows of such an instant.
func TestIndicesAreOfTheWindowsThatAClockShows(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 0))
	for name, r := range kinds() {
		first, last := r.Indices()
		if got := r.WindowAt(0).Index; got != first {
			t.Errorf("%s: the first is %d, want %d", name, first, got)
		}
		if got := r.WindowAt(limiter.MaxInstant).Index; got != last {
			t.Errorf("%s: the last is %d, want %d", name, last, got)
		}
		for range 1000 {
			now := limiter.Instant(rng.Int64N(int64(limiter.MaxInstant) + 1))
			if err := windows(r.WindowAt(now)).Validate(); err != nil {
				t.Fatalf("%s: at %d: %v", name, now, err)
			}
		}
		for _, beyond := range []int64{first - 1, last + 1, -1 << 63, 1<<63 - 1} {
			checkError(t, name, windows(limiter.OpenWindow{Rate: r, Index: beyond}).Validate(), "windows[0].index is")
		}
	}
}

func TestValidateWindows(t *testing.T) {
	second := window(1, limiter.Second, 1_700_000_000, 0)
	with := func(change func(*limiter.OpenWindow)) limiter.Windows {
		w := second
		change(&w)
		return windows(window(1, limiter.Day, 20_000, 0), w)
	}
	for name, c := range map[string]struct {
		windows limiter.Windows
		want    string
	}{
		"two windows":          {with(func(*limiter.OpenWindow) {}), ""},
		"of any grant":         {with(func(w *limiter.OpenWindow) { w.Granted = -1 }), ""},
		"none":                 {limiter.Windows{}, "windows has 0 entries"},
		"fewer than none":      {limiter.Windows{N: -1}, "windows has -1 entries"},
		"too many":             {limiter.Windows{N: 5}, "windows has 5 entries"},
		"no limit":             {with(func(w *limiter.OpenWindow) { w.Limit = 0 }), "windows[1].rate.limit is 0"},
		"a limit too large":    {with(func(w *limiter.OpenWindow) { w.Limit = limiter.MaxLimit + 1 }), "windows[1].rate.limit"},
		"no length":            {with(func(w *limiter.OpenWindow) { w.Window = 0 }), "windows[1].rate.window is 0µs"},
		"a length too long":    {with(func(w *limiter.OpenWindow) { w.Window = limiter.MaxWindow + 1 }), "windows[1].rate.window"},
		"a negative burst":     {with(func(w *limiter.OpenWindow) { w.Burst = -1 }), "windows[1].rate.burst is -1"},
		"an offset too large":  {with(func(w *limiter.OpenWindow) { w.Offset = limiter.MaxOffset + 1 }), "windows[1].rate.offset"},
		"an offset too small":  {with(func(w *limiter.OpenWindow) { w.Offset = -limiter.MaxOffset - 1 }), "windows[1].rate.offset"},
		"a month of a second":  {with(func(w *limiter.OpenWindow) { w.Monthly = true }), "windows[1].rate.window is 1000000µs, but months have"},
		"the windows of a day": {with(func(w *limiter.OpenWindow) { w.Window, w.Index = limiter.Day, 20_001 }), "windows[1].rate has the windows of windows[0].rate"},
	} {
		checkError(t, name, c.windows.Validate(), c.want)
	}
}

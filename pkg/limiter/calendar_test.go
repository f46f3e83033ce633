package limiter_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestMonthsAreThoseOfTheCalendar compares months over centuries, and around each
// begin of a month, with package time.
func TestMonthsAreThoseOfTheCalendar(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 0))
	check := func(now limiter.Instant, offset limiter.Micros) {
		t.Helper()
		r := limiter.Rate{Limit: 1, Window: limiter.MaxWindow, Offset: offset, Monthly: true}
		local := time.UnixMicro(int64(now.Add(offset))).UTC()
		year, month := local.Year(), local.Month()
		begin := limiter.Instant(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).UnixMicro()).Add(-offset)
		end := limiter.Instant(time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()).Add(-offset)
		w := r.WindowAt(now)
		if w.Index != int64(year)*12+int64(month)-1 || w.Start() != begin || w.End() != end || !w.Contains(now) {
			t.Fatalf("at %v with offset %d: got window %d from %d to %d, want %d to %d", local, offset, w.Index, w.Start(), w.End(), begin, end)
		}
	}
	offsets := []limiter.Micros{0, 1, -1, 3600 * limiter.Second, -5 * 3600 * limiter.Second, limiter.MaxOffset, -limiter.MaxOffset}
	for month := range 12 * 800 {
		begin := limiter.Instant(time.Date(1600, time.Month(1+month), 1, 0, 0, 0, 0, time.UTC).UnixMicro())
		for _, offset := range offsets {
			for _, d := range []limiter.Micros{-1, 0, 1} {
				check(begin.Add(d-offset), offset)
			}
		}
	}
	for range 100_000 {
		check(limiter.Instant(rng.Int64N(1<<57)-1<<56), limiter.Micros(rng.Int64N(2*int64(limiter.MaxOffset)))-limiter.MaxOffset)
	}
}

// TestFixedWindowsAreMultiplesOfALength checks windows with offsets of both signs,
// before and after the epoch.
func TestFixedWindowsAreMultiplesOfALength(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 0))
	for range 100_000 {
		r := limiter.Rate{Limit: 1, Window: limiter.MinWindow + limiter.Micros(rng.Int64N(int64(limiter.MaxWindow-limiter.MinWindow)))}
		r.Offset = limiter.Micros(rng.Int64N(2*int64(limiter.MaxOffset))) - limiter.MaxOffset
		now := limiter.Instant(rng.Int64N(1<<53) - 1<<51)
		w := r.WindowAt(now)
		if now < w.Start() || now >= w.End() || w.End().Sub(w.Start()) != r.Window || !w.Contains(now) || w.Contains(w.End()) || w.Contains(w.Start()-1) {
			t.Fatalf("%d is not in window %d from %d to %d of %+v", now, w.Index, w.Start(), w.End(), r)
		}
		if int64(w.Start().Add(r.Offset))%int64(r.Window) != 0 {
			t.Fatalf("window %d of %+v starts at %d", w.Index, r, w.Start())
		}
	}
}

func TestQuotasBeginWhereACalendarSays(t *testing.T) {
	at := func(text string) limiter.Instant {
		when, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return limiter.Instant(when.UnixMicro())
	}
	const hour = 3600 * limiter.Second
	for name, c := range map[string]struct {
		rate               limiter.Rate
		now, begins, until string
	}{
		"a day in UTC": {
			limiter.Rate{Window: limiter.Day},
			"2028-02-29T23:59:59Z", "2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z",
		},
		"a day two hours ahead": {
			limiter.Rate{Window: limiter.Day, Offset: 2 * hour},
			"2028-02-29T23:59:59+02:00", "2028-02-29T00:00:00+02:00", "2028-03-01T00:00:00+02:00",
		},
		"a week from Monday": {
			limiter.Rate{Window: 7 * limiter.Day, Offset: 3 * limiter.Day},
			"2026-11-20T15:00:00Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z",
		},
		"a week from Sunday, five hours behind": {
			limiter.Rate{Window: 7 * limiter.Day, Offset: 4*limiter.Day - 5*hour},
			"2026-11-20T15:00:00Z", "2026-11-15T00:00:00-05:00", "2026-11-22T00:00:00-05:00",
		},
		"a month two hours ahead": {
			limiter.Rate{Window: limiter.MaxWindow, Monthly: true, Offset: 2 * hour},
			"2026-10-31T22:00:00Z", "2026-11-01T00:00:00+02:00", "2026-12-01T00:00:00+02:00",
		},
		"a leap February": {
			limiter.Rate{Window: limiter.MaxWindow, Monthly: true},
			"2400-02-29T12:00:00Z", "2400-02-01T00:00:00Z", "2400-03-01T00:00:00Z",
		},
		"a February without a leap day": {
			limiter.Rate{Window: limiter.MaxWindow, Monthly: true},
			"2100-02-28T12:00:00Z", "2100-02-01T00:00:00Z", "2100-03-01T00:00:00Z",
		},
	} {
		w := c.rate.WindowAt(at(c.now))
		if w.Start() != at(c.begins) || w.End() != at(c.until) {
			t.Errorf("%s: %s lies in a window from %v to %v", name, c.now,
				time.UnixMicro(int64(w.Start())).UTC(), time.UnixMicro(int64(w.End())).UTC())
		}
	}
}

package traffic

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestSendersTakeTurns evenly, from one that is drawn by lot on.
func TestSendersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(3, 100, 70*time.Millisecond)
		p.lot = 2
		sent := make([][]time.Duration, 3)
		if _, err := together(3, func(i int) (int, error) {
			return 0, p.keep(i, func(at time.Time) error {
				sent[i] = append(sent[i], at.Sub(p.begin))
				return nil
			})
		}); err != nil {
			t.Fatal(err)
		}
		ms := time.Millisecond
		for i, want := range [][]time.Duration{{10 * ms, 40 * ms}, {20 * ms, 50 * ms}, {0, 30 * ms, 60 * ms}} {
			if !slices.Equal(sent[i], want) {
				t.Errorf("sender %d sends after %v, want %v", i, sent[i], want)
			}
		}
	})
}

// TestALateRequestBeganWhenItWasDue, and the next is sent at once.
func TestALateRequestBeganWhenItWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(1, 100, 40*time.Millisecond)
		var late []time.Duration
		if err := p.keep(0, func(began time.Time) error {
			late = append(late, time.Since(began))
			time.Sleep(25 * time.Millisecond)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		ms := time.Millisecond
		if want := []time.Duration{0, 15 * ms, 30 * ms, 45 * ms}; !slices.Equal(late, want) {
			t.Errorf("they are sent %v after they were due, want %v", late, want)
		}
	})
}

// TestAFailureEndsASender, and is returned with what the others did.
func TestAFailureEndsASender(t *testing.T) {
	failure := errors.New("failed")
	p := newPace(1, 1_000_000, time.Hour)
	if err := p.keep(0, func(time.Time) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("keep returned %v", err)
	}
	sum, err := together(3, func(i int) (int, error) {
		if i == 1 {
			return i, failure
		}
		return i, nil
	})
	if sum != 3 || !errors.Is(err, failure) {
		t.Errorf("together returned %d, %v", sum, err)
	}
}

func TestPercentile(t *testing.T) {
	all := make([]time.Duration, 1000)
	for i := range all {
		all[i] = time.Duration(i)
	}
	for perMille, want := range map[int]float64{0: 0, 500: 500, 990: 990, 1000: 999} {
		if got := Percentile(all, perMille); got != want {
			t.Errorf("%d of a thousand are not above %g, want %g", perMille, got, want)
		}
	}
}

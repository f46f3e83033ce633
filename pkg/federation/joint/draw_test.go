package joint_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/federation/joint"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

var (
	key    = store.Key{Scope: store.Scope{Cluster: "c", Namespace: "ns", Policy: "p", Limit: "l"}, Hash: "h"}
	errCut = &store.UnavailableError{Store: "test", Cause: errors.New("cut off")}
)

// A till is a budget of one region that has all of it in hand.
type till struct {
	rate  limiter.Rate
	clock func() limiter.Instant
	used  map[int64]int64 // by window

	most     int64         // that it grants at once; 0 for any amount
	wait     time.Duration // of a take
	err      error         // of takes
	lost     error         // of returns, which take effect or not
	reason   limiter.Reason
	asked    []limiter.Command
	expected int
}

func newTill(limit int64, window limiter.Micros, clock func() limiter.Instant) *till {
	return &till{rate: limiter.Rate{Limit: limit, Window: window}, clock: clock, used: map[int64]int64{}}
}

func (b *till) Expect(store.Key, limiter.Command) { b.expected++ }

func (b *till) Apply(ctx context.Context, _ store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	b.asked = append(b.asked, c)
	if len(p.Rates) != 1 || p.Rates[0].Window != b.rate.Window {
		return limiter.Result{}, fmt.Errorf("asked with rates %v", p.Rates)
	}
	w := b.rate.WindowAt(b.clock())
	if c.Op == limiter.Return {
		back := c.Windows.Open[0]
		if err := cmp.Or(b.lost, ctx.Err()); err != nil {
			return limiter.Result{}, err
		}
		if c.Windows.N != 1 || back.Index != w.Index || c.Want > b.used[w.Index] {
			return limiter.Result{Reason: limiter.Forfeited}, nil
		}
		b.used[w.Index] -= c.Want
		return limiter.Result{Granted: c.Want}, nil
	}
	if b.wait > 0 && c.Op == limiter.Take {
		t := time.NewTimer(b.wait)
		defer t.Stop()
		select {
		case <-t.C:
			w = b.rate.WindowAt(b.clock())
		case <-ctx.Done():
			return limiter.Result{}, &store.UnavailableError{Store: "test", Cause: ctx.Err()}
		}
	}
	if b.err != nil {
		return limiter.Result{}, b.err
	}
	left := b.rate.Limit - b.used[w.Index]
	res := limiter.Result{Limit: b.rate.Limit, Remaining: left, Now: b.clock(), ResetAfter: w.End().Sub(b.clock())}
	res.Windows.N, res.Windows.Open[0] = 1, w
	units := min(left, c.Want)
	if b.most > 0 {
		units = min(units, b.most)
	}
	switch {
	case c.Min > b.rate.Limit:
		res.Reason = limiter.TooLarge
		return res, nil
	case units < c.Min || b.reason != limiter.Granted:
		res.Reason, res.RetryAfter = max(limiter.Exhausted, b.reason), res.ResetAfter
		return res, nil
	case c.Op == limiter.Take:
		b.used[w.Index] += units
		res.Remaining -= units
	}
	res.Granted, res.ExpiresIn = units, w.End().Sub(b.clock())
	return res, nil
}

// total returns what is charged to all windows.
func (b *till) total() (sum int64) {
	for _, n := range b.used {
		sum += n
	}
	return sum
}

// wall is the clock of the test.
func wall() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }

// A desk draws from tills.
type desk struct {
	tills  []*till
	draw   joint.Draw
	params limiter.Params
}

func newDesk(tills ...*till) *desk {
	d := &desk{tills: tills, draw: joint.Draw{Patience: 50 * time.Millisecond}}
	for _, b := range tills {
		d.draw.Budgets = append(d.draw.Budgets, b)
		d.params.Rates = append(d.params.Rates, b.rate)
	}
	return d
}

func (d *desk) apply(t *testing.T, c limiter.Command) limiter.Result {
	t.Helper()
	res, err := d.draw.Apply(t.Context(), key, d.params, c)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func take(least, want int64) limiter.Command {
	return limiter.Command{Op: limiter.Take, Min: least, Want: want}
}

// charged returns what each till counts.
func (d *desk) charged() (all []int64) {
	for _, b := range d.tills {
		all = append(all, b.total())
	}
	return all
}

func (d *desk) requireCharged(t *testing.T, units int64) {
	t.Helper()
	for i, n := range d.charged() {
		if n != units {
			t.Errorf("rate %d is charged %d, want %d of each", i, n, units)
		}
	}
}

// TestTheSmallestIsGranted, and what others granted beyond it goes back.
func TestTheSmallestIsGranted(t *testing.T) {
	for name, tc := range map[string]struct {
		limits [3]int64 // of a day, a second and an hour
		want   int64
	}{
		"the first binds":  {[3]int64{3, 20, 50}, 3},
		"the second binds": {[3]int64{30, 2, 50}, 2},
		"the third binds":  {[3]int64{30, 20, 5}, 5},
		"none binds":       {[3]int64{30, 20, 50}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(newTill(tc.limits[0], limiter.Day, wall), newTill(tc.limits[1], limiter.Second, wall), newTill(tc.limits[2], limiter.Day/24, wall))
				res := d.apply(t, take(1, 10))
				if res.Granted != tc.want || res.Reason != limiter.Granted {
					t.Errorf("granted %+v, want %d", res, tc.want)
				}
				d.requireCharged(t, tc.want)
				if res.Windows.N != 3 {
					t.Fatalf("windows %+v", res.Windows)
				}
				for i, w := range res.Windows.Slice() {
					if w.Rate != d.params.Rates[i] || !w.Contains(res.Now) {
						t.Errorf("window %d is %+v at %d, want one of %+v", i, w, res.Now, d.params.Rates[i])
					}
				}
				if want := res.Windows.Open[1].End().Sub(wall()); res.ExpiresIn != want {
					t.Errorf("it expires in %d, want %d: when the first window ends", res.ExpiresIn, want)
				}
				least := min(tc.limits[0], tc.limits[1], tc.limits[2])
				if res.Remaining != least-tc.want || res.Limit != least && tc.want < 10 {
					t.Errorf("%d of %d remain", res.Remaining, res.Limit)
				}
			})
		})
	}
}

// TestARefusalChargesNobody, and says why and until when.
func TestARefusalChargesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second, hour := newTill(100, limiter.Second, wall), newTill(40, limiter.Day/24, wall)
		d := newDesk(hour, second)
		d.apply(t, take(1, 40))
		res := d.apply(t, take(1, 10))
		if res.Granted != 0 || res.Reason != limiter.Exhausted || res.RetryAfter != hour.rate.WindowAt(wall()).End().Sub(wall()) {
			t.Errorf("beyond the hour: %+v", res)
		}
		if res.Limit != 40 || res.Remaining != 0 || res.Windows.N != 2 || res.Windows.Open[0].Rate != hour.rate {
			t.Errorf("the rate that binds is not shown: %+v", res)
		}
		d.requireCharged(t, 40)
		time.Sleep(time.Hour)
		d.apply(t, take(1, 10))
		second.used = map[int64]int64{second.rate.WindowAt(wall()).Index: 100}
		res = d.apply(t, take(1, 10))
		if res.Reason != limiter.Exhausted || res.RetryAfter > limiter.Second || res.Windows.N != 2 {
			t.Errorf("beyond the second: %+v", res)
		}
		if hour.total() != 50 {
			t.Errorf("the hour is charged %d of a request that the second refused, want 50 as before", hour.total())
		}
		hour.used = map[int64]int64{hour.rate.WindowAt(wall()).Index: 40}
		if res = d.apply(t, take(1, 1)); res.RetryAfter != hour.rate.WindowAt(wall()).End().Sub(wall()) {
			t.Errorf("beyond both: %+v, want it to wait for the hour", res)
		}
		if res = d.apply(t, take(41, 41)); res.Reason != limiter.TooLarge || res.RetryAfter != 0 {
			t.Errorf("more than an hour has: %+v", res)
		}
		hour.reason = limiter.Amnesia
		second.used = map[int64]int64{}
		if res = d.apply(t, take(1, 1)); res.Reason != limiter.Amnesia || second.total() != 0 {
			t.Errorf("of a coordinator that forgot: %+v", res)
		}
	})
}

// TestTheLongestWindowIsAskedLast for what the others granted: nothing of it is out of others' reach.
func TestTheLongestWindowIsAskedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		day, second := newTill(1000, limiter.Day, wall), newTill(7, limiter.Second, wall)
		d := newDesk(day, second)
		d.apply(t, take(1, 10))
		if len(day.asked) != 1 || day.asked[0].Want != 7 || day.expected != 1 || second.expected != 0 {
			t.Errorf("the day was asked %+v, and expected %d commands", day.asked, day.expected)
		}
	})
}

// TestAnErrorChargesNobody whichever budget has it.
func TestAnErrorChargesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i := range 3 {
			d := newDesk(newTill(10, limiter.Second, wall), newTill(10, 60*limiter.Second, wall), newTill(10, limiter.Day, wall))
			d.tills[i].err = errCut
			if _, err := d.draw.Apply(t.Context(), key, d.params, take(1, 5)); !errors.Is(err, errCut) {
				t.Errorf("budget %d is away: %v", i, err)
			}
			d.requireCharged(t, 0)
		}
	})
}

// TestAReturnThatIsLostIsLost and not tried again.
func TestAReturnThatIsLostIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second, day := newTill(10, limiter.Second, wall), newTill(3, limiter.Day, wall)
		d := newDesk(second, day)
		second.lost = errCut
		if res := d.apply(t, take(1, 10)); res.Granted != 3 {
			t.Errorf("granted %+v", res)
		}
		returns := 0
		for _, c := range second.asked {
			if c.Op == limiter.Return {
				returns++
			}
		}
		if got := d.charged(); got[0] != 10 || got[1] != 3 || returns != 1 {
			t.Errorf("charged %v after %d returns, want 10 and 3 after one", got, returns)
		}
	})
}

// TestAllBudgetsTogetherWaitOnce: what is ordered meanwhile serves the next request.
func TestAllBudgetsTogetherWaitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(newTill(10, limiter.Second, wall), newTill(10, 60*limiter.Second, wall), newTill(10, limiter.Day, wall))
		d.tills[0].wait, d.tills[1].wait = 30*time.Millisecond, 30*time.Millisecond
		began := time.Now()
		res := d.apply(t, take(1, 1))
		if took := time.Since(began); res.Reason != limiter.Exhausted || res.RetryAfter <= 0 || took != 50*time.Millisecond {
			t.Errorf("after %v: %+v, want a refusal after 50ms", took, res)
		}
		d.requireCharged(t, 0)
		d.tills[1].wait = 0
		d.tills[0].wait = 49 * time.Millisecond
		d.tills[2].wait = 6 * time.Millisecond
		if res := d.apply(t, take(1, 1)); res.Granted != 1 {
			t.Errorf("the last budget has no time at all: %+v", res)
		}
		ctx, cancel := context.WithCancel(t.Context())
		d.tills[0].wait, d.tills[2].wait = 0, time.Second
		time.AfterFunc(time.Millisecond, cancel)
		if _, err := d.draw.Apply(ctx, key, d.params, take(1, 1)); err == nil {
			t.Error("a request that ended is refused, want an error")
		}
		d.requireCharged(t, 1)
	})
}

// TestWindowsThatDoNotMeetAreNoGrant: one is over by the time that the other is drawn from.
func TestWindowsThatDoNotMeetAreNoGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := newTill(10, limiter.Second, wall)
		minute := newTill(10, 60*limiter.Second, func() limiter.Instant { return wall().Add(60 * limiter.Second) })
		d := newDesk(second, minute)
		res := d.apply(t, take(1, 1))
		if res.Granted != 0 || res.Reason != limiter.Exhausted || res.RetryAfter <= 0 || res.Windows.N != 0 {
			t.Errorf("got %+v", res)
		}
		d.requireCharged(t, 0)
	})
}

// TestReturnsGoToTheWindowsThatAreOpen whatever became of the others.
func TestReturnsGoToTheWindowsThatAreOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(newTill(10, limiter.Second, wall), newTill(10, limiter.Day, wall))
		res := d.apply(t, take(5, 5))
		back := limiter.Command{Op: limiter.Return, Want: 2, Windows: res.Windows, At: res.Now}
		if got := d.apply(t, back); got.Reason != limiter.Granted || got.Granted != 2 {
			t.Errorf("in time: %+v", got)
		}
		d.requireCharged(t, 3)
		time.Sleep(time.Second)
		if got := d.apply(t, back); got.Reason != limiter.Forfeited {
			t.Errorf("late: %+v", got)
		}
		if got := d.tills[1].total(); got != 1 {
			t.Errorf("the day is charged %d, want 1: it is open", got)
		}
		back.Windows.N = 1
		if got := d.apply(t, back); got.Reason != limiter.Forfeited || d.tills[1].total() != 1 {
			t.Errorf("of one rate: %+v", got)
		}
	})
}

// TestAPeekChargesNobody and returns what would be granted.
func TestAPeekChargesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(newTill(10, limiter.Second, wall), newTill(4, limiter.Day, wall))
		if res := d.apply(t, limiter.Command{Op: limiter.Peek, Min: 1, Want: 9}); res.Granted != 4 || res.Remaining != 4 || res.Limit != 4 {
			t.Errorf("got %+v", res)
		}
		if res := d.apply(t, limiter.Command{Op: limiter.Peek, Min: 5, Want: 9}); res.Granted != 0 || res.Reason != limiter.TooLarge {
			t.Errorf("got %+v", res)
		}
		d.requireCharged(t, 0)
	})
}

// TestParametersOfOtherLimitsAreRefused before anything is drawn.
func TestParametersOfOtherLimitsAreRefused(t *testing.T) {
	for name, change := range map[string]func(*limiter.Params){
		"a rate more": func(p *limiter.Params) {
			p.Rates = append(p.Rates, limiter.Rate{Limit: 1, Window: 60 * limiter.Second})
		},
		"any of the rates": func(p *limiter.Params) { p.Any = true },
		"tenants":          func(p *limiter.Params) { p.Fairness.Default = 1 },
		"buckets":          func(p *limiter.Params) { p.Algorithm = limiter.GCRA },
	} {
		d := newDesk(newTill(10, limiter.Second, wall), newTill(4, limiter.Day, wall))
		change(&d.params)
		if _, err := d.draw.Apply(t.Context(), key, d.params, take(1, 1)); err == nil || !strings.Contains(err.Error(), "a budget is one FixedWindow for each rate") {
			t.Errorf("%s: error %v", name, err)
		}
		d.requireCharged(t, 0)
	}
}

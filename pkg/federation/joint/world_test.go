package joint_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/testing/seeds"
	"github.com/weir-dev/weir/pkg/federation/joint"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A holding is what a holder has of a grant.
type holding struct {
	units   int64
	windows limiter.Windows
	at      limiter.Instant
}

// A drawing decides commands as a joint.Draw does, or not quite.
type drawing interface {
	Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error)
}

// A world is random rates whose budgets grant less than they are asked for, refuse, fail and lose returns.
type world struct {
	rng   *rand.Rand
	fails bool
	desk  *desk
	draw  drawing
	used  []map[int64]int64 // handed on and not given back, by rate and window
	held  []holding
}

func newWorld(seed uint64, weaken func(*desk) drawing) *world {
	lengths := []limiter.Micros{limiter.Second, 2 * limiter.Second, 7 * limiter.Second, 60 * limiter.Second}
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), fails: seed%2 == 1}
	var tills []*till
	for _, i := range w.rng.Perm(len(lengths))[:2+w.rng.IntN(3)] {
		tills = append(tills, newTill(1+w.rng.Int64N(60), lengths[i], wall))
		w.used = append(w.used, map[int64]int64{})
	}
	w.desk = newDesk(tills...)
	w.draw = weaken(w.desk)
	return w
}

// production is the draw as it is.
func production(d *desk) drawing { return d.draw }

// stir changes what budgets do.
func (w *world) stir() {
	time.Sleep(time.Duration(w.rng.Int64N(int64(300 * time.Millisecond))))
	for _, b := range w.desk.tills {
		b.most, b.err, b.lost, b.reason = w.rng.Int64N(12), nil, nil, limiter.Granted
		if w.fails && w.rng.IntN(8) == 0 {
			b.err = errCut
		}
		if w.fails && w.rng.IntN(8) == 0 {
			b.lost = errCut
		}
		if w.rng.IntN(10) == 0 {
			b.reason = limiter.Exhausted
		}
	}
}

// giveBack returns a part of the units held, and forgets the rest.
func (w *world) giveBack() {
	i := w.rng.IntN(len(w.held))
	h := w.held[i]
	w.held = append(w.held[:i], w.held[i+1:]...)
	back := w.rng.Int64N(h.units) + 1
	_, _ = w.draw.Apply(context.Background(), key, w.desk.params, limiter.Command{Op: limiter.Return, Want: back, Windows: h.windows, At: h.at})
	for r, o := range h.windows.Slice() {
		w.used[r][o.Index] -= back
	}
}

// take asks for units.
func (w *world) take() error {
	c := take(1+w.rng.Int64N(3), 3+w.rng.Int64N(12))
	res, err := w.draw.Apply(context.Background(), key, w.desk.params, c)
	switch {
	case err != nil && w.fails:
		return nil
	case err != nil:
		return err
	case res.Granted == 0 && res.RetryAfter <= 0 && res.Reason != limiter.TooLarge:
		return fmt.Errorf("%+v does not say when to ask again", res)
	case res.Granted == 0:
		return nil
	case res.Granted < c.Min || res.Granted > c.Want || res.Windows.N != len(w.desk.tills) || res.ExpiresIn <= 0:
		return fmt.Errorf("granted %+v for %+v", res, c)
	}
	w.held = append(w.held, holding{res.Granted, res.Windows, res.Now})
	for r, o := range res.Windows.Slice() {
		w.used[r][o.Index] += res.Granted
	}
	return nil
}

// check requires that all that is handed on is charged to the windows of every rate. When nothing fails
// nothing else is.
func (w *world) check() error {
	for r, b := range w.desk.tills {
		open := b.rate.WindowAt(wall()).Index
		for index, n := range w.used[r] {
			if charged := b.used[index]; n > charged || n > b.rate.Limit {
				return fmt.Errorf("%d units of window %d of %+v are handed on, and %d charged", n, index, b.rate, charged)
			}
		}
		if charged := b.used[open]; !w.fails && w.used[r][open] != charged {
			return fmt.Errorf("%d units of the open window of %+v are charged, and %d handed on", charged, b.rate, w.used[r][open])
		}
	}
	return nil
}

// run returns what is wrong with a draw in the world of a seed.
func run(t *testing.T, seed uint64, weaken func(*desk) drawing) (err error) {
	synctest.Test(t, func(*testing.T) {
		w := newWorld(seed, weaken)
		for range 200 {
			if w.stir(); len(w.held) > 0 && w.rng.IntN(3) == 0 {
				w.giveBack()
			} else {
				err = w.take()
			}
			if err = errors.Join(err, w.check()); err != nil {
				return
			}
		}
	})
	return err
}

// TestRatesAreChargedTogether in random worlds: every unit that is handed on is charged to the window of each
// rate, and no other is.
func TestRatesAreChargedTogether(t *testing.T) {
	for seed := range seeds.Of(uint64(400)) {
		if err := run(t, seed, production); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// A weakened draw breaks one of the rules.
type weakened struct {
	*desk
	breaks func(d *desk, c limiter.Command, res *limiter.Result)
}

func (w weakened) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	res, err := w.draw.Apply(ctx, key, p, c)
	if err == nil && c.Op == limiter.Take {
		w.breaks(w.desk, c, &res)
	}
	return res, err
}

// forgetful are tills that do not send some returns, or send all twice.
type forgetful struct {
	*till
	times int
}

func (b forgetful) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (res limiter.Result, err error) {
	if c.Op != limiter.Return {
		return b.till.Apply(ctx, key, p, c)
	}
	for range b.times {
		res, err = b.till.Apply(ctx, key, p, c)
	}
	return res, err
}

// returning has the rests of a draw be given back that often.
func returning(times int) func(*desk) drawing {
	return func(d *desk) drawing {
		draw := joint.Draw{Patience: d.draw.Patience}
		for _, b := range d.tills {
			draw.Budgets = append(draw.Budgets, forgetful{b, times})
		}
		return rests{draw, d}
	}
}

// rests gives back as it should what holders do.
type rests struct {
	joint.Draw
	*desk
}

func (r rests) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	if c.Op == limiter.Return {
		return r.draw.Apply(ctx, key, p, c)
	}
	return r.Draw.Apply(ctx, key, p, c)
}

// TestWeakenedDrawsAreRefuted: the worlds find each rule that is broken.
func TestWeakenedDrawsAreRefuted(t *testing.T) {
	for name, weaken := range map[string]func(*desk) drawing{
		"more than the smallest is granted": func(d *desk) drawing {
			return weakened{d, func(_ *desk, c limiter.Command, res *limiter.Result) {
				if res.Granted > 0 {
					res.Granted = c.Want
				}
			}}
		},
		"the rest stays":           returning(0),
		"the rest goes back twice": returning(2),
		"one rate is left out": func(d *desk) drawing {
			return weakened{d, func(d *desk, _ limiter.Command, res *limiter.Result) {
				if b, w := d.tills[0], res.Windows.Open[0]; res.Granted > 0 {
					b.used[w.Index] -= res.Granted
				}
			}}
		},
		"a grant outlives a window": func(d *desk) drawing {
			return weakened{d, func(_ *desk, _ limiter.Command, res *limiter.Result) { res.Windows.Open[0].Index-- }}
		},
	} {
		refuted := false
		for seed := uint64(0); seed < 40 && !refuted; seed++ {
			refuted = run(t, seed, weaken) != nil
		}
		if !refuted {
			t.Errorf("%s, and no world finds it", name)
		}
	}
}

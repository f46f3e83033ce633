package journal

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// roomy is room in a record for all entries of a search. Where there is less, a successor
// may not know of all that was granted of an entry that a crash left: Covered does not hold
// of it after a second crash.
const roomy = 1 << 20

// small are the rules of a search that ends: units of a clock that counts windows of
// three instants. Each may have three units.
func small(keys int) rules {
	r := rules{
		params: limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: 3, Window: 3}}},
		terms:  3, until: 8, most: roomy,
	}
	for i := range keys {
		r.keys = append(r.keys, Key{Limit: limit, Hash: fmt.Sprint(i)})
	}
	return r
}

// A step is one thing that may happen next.
type step struct {
	name string
	rare bool // in a walk
	do   func(*world)
}

// steps returns all that may happen.
func (w *world) steps() []step {
	var all []step
	add := func(do func(*world), name string, args ...any) {
		all = append(all, step{name: fmt.Sprintf(name, args...), do: do})
	}
	rare := func(do func(*world), name string, args ...any) {
		add(do, name, args...)
		all[len(all)-1].rare = true
	}
	if len(w.leaders) < w.rules.terms && w.now+1 < w.rules.until {
		rare((*world).follow, "follow")
	}
	if w.now+1 < w.rules.until {
		rare(func(w *world) { w.now++ }, "tick")
	}
	for i, l := range w.leaders {
		if i < len(w.leaders)-2 {
			continue // of those that were followed the last is enough
		}
		of := func(do func(*world, *leader)) func(*world) { return func(w *world) { do(w, w.leaders[i]) } }
		for _, k := range w.rules.keys {
			for _, n := range []int64{1, max(3, w.rules.params.Rates[0].Limit/3)} {
				rare(of(func(w *world, l *leader) { w.take(l, k, 1, n) }), "%d take %s %d", i, k.Hash, n)
			}
			if c, ok := l.counters[k]; ok && c.state.KeepFor(w.clock(l)) <= 0 {
				add(of(func(w *world, l *leader) { w.sweep(l, k) }), "%d sweep %s", i, k.Hash)
			}
		}
		if due, _ := l.Due(); due && l.sent == nil {
			add(of((*world).write), "%d write", i)
		}
		if l.sent != nil && (l.read == w.version || w.rules.blind) {
			add(of((*world).arrive), "%d arrive", i)
		}
		if l.sent != nil && l.read != w.version {
			add(of((*world).answer), "%d answer", i)
		}
	}
	return all
}

// search looks at everything that may happen in that many steps, and returns how many worlds
// there are and the first steps that lead to one in which a window exceeds its limit.
func search(r rules, depth int) (worlds int, found string) {
	type node struct {
		of   *world
		path []string
	}
	seen := map[[16]byte]bool{}
	front := []node{{of: newWorld(r)}}
	front[0].of.follow()
	for range depth {
		var next []node
		for _, n := range front {
			for _, s := range n.of.steps() {
				w := n.of.clone()
				s.do(w)
				sum := sha256.Sum256([]byte(w.String()))
				if id := [16]byte(sum[:]); !seen[id] {
					seen[id] = true
					path := append(slices.Clip(n.path), s.name)
					if over := cmp.Or(w.exceeded(), w.uncovered()); over != "" {
						return len(seen), over + " after " + strings.Join(path, ", ")
					}
					next = append(next, node{w, path})
				}
			}
		}
		front = next
	}
	return len(seen), ""
}

func TestNothingThatMayHappenExceedsALimit(t *testing.T) {
	for name, c := range map[string]struct{ keys, depth, most int }{
		"one key":                {1, 8, roomy},
		"two keys":               {2, 6, roomy},
		"no room for entries":    {1, 8, 0},
		"two keys, room for one": {2, 6, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := small(c.keys)
			r.most = c.most
			worlds, found := search(r, c.depth)
			t.Logf("%d worlds", worlds)
			if found != "" {
				t.Error(found)
			}
		})
	}
}

// walk does what may happen at random, and returns the steps to a window that exceeds its
// limit, or nothing.
func walk(r rules, rng *rand.Rand, steps int) (w *world, found string) {
	w = newWorld(r)
	w.follow()
	var path []string
	for range steps {
		all := w.steps()
		s := all[rng.IntN(len(all))]
		if s.rare && rng.IntN(4) > 0 {
			continue
		}
		s.do(w)
		path = append(path, s.name)
		over := w.exceeded()
		if over == "" && r.most == roomy {
			over = w.uncovered()
		}
		if over != "" {
			return w, over + " after " + strings.Join(path, ", ")
		}
	}
	return w, ""
}

// large returns rules of a longer story.
func large(rng *rand.Rand) rules {
	r := small(1 + rng.IntN(3))
	r.params.Rates[0] = limiter.Rate{Limit: []int64{2, 3, 5, 40, 100}[rng.IntN(5)], Window: limiter.Micros(3 + 9*rng.IntN(2))}
	r.terms, r.until = 2+rng.IntN(6), 30
	if rng.IntN(3) == 0 {
		r.most = 60 * rng.IntN(3)
	}
	return r
}

func TestNoWalkExceedsALimit(t *testing.T) {
	var granted, terms int64
	for seed := range uint64(3_000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		w, found := walk(large(rng), rng, 200)
		if found != "" {
			t.Fatalf("seed %d: %s", seed, found)
		}
		granted, terms = granted+w.units, terms+int64(len(w.leaders))
	}
	t.Logf("%d units in %d terms", granted, terms)
	if granted < 20_000 || terms < 10_000 {
		t.Error("too little happened")
	}
}

// TestAWalkFinds weakens one rule after the other.
func TestAWalkFinds(t *testing.T) {
	for name, weaken := range map[string]func(*rules){
		"a successor that forgets what was set aside":     func(r *rules) { r.forgets = true },
		"a record that counts before it is known":         func(r *rules) { r.hasty = true },
		"a write that does not look at what it replaces":  func(r *rules) { r.blind = true },
		"a leader that serves after its successor begins": func(r *rules) { r.ahead = true },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3_000) {
				rng := rand.New(rand.NewPCG(seed, 0))
				r := large(rng)
				weaken(&r)
				if _, found := walk(r, rng, 120); found != "" {
					t.Logf("seed %d: %s", seed, found)
					return
				}
			}
			t.Error("nothing was exceeded")
		})
	}
}

package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A benchCase is one table: its first contender is the limit, its second Weir.
type benchCase struct {
	name       string
	goal       float64 // Weir's cost is at most goal times the limit's
	keys       []string
	allowed    bool
	contenders func() []contender
}

// check sets the cost of a decision in memory beside other limiters, on one
// processor and on two.
func check(show func(*table)) error {
	for _, procs := range []int{1, 2} {
		for _, c := range checks() {
			show(compare(c, procs, measure(c.contenders(), c.keys, load{procs, procs}, c.allowed)))
		}
	}
	return nil
}

func checks() []benchCase {
	one, many := []string{"key"}, makeKeys(100_000)
	return []benchCase{
		{"one hot key, admitted", 1.5, one, true, func() []contender {
			return append([]contender{
				limitOne(), weirHandle("weir", window(limiter.MaxLimit), limiter.MaxLimit),
				xtimeOne(plenty), uberOne(), sethvargo(plenty), throttle(plenty),
				weirHandle("weir, store asked every 100", window(limiter.MaxLimit), 100),
			}, weirAlgorithms()...)
		}},
		{"one hot key, refused", 1.5, one, false, func() []contender {
			return []contender{
				limitRefuse(), weirHandle("weir", window(spent), 1),
				xtimeOne(spent), sethvargo(spent), throttle(spent),
			}
		}},
		{"100,000 keys, admitted", 2, many, true, func() []contender {
			return []contender{
				limitKeyed(many), weirKeyed("weir", limiter.MaxLimit),
				xtimeKeyed(plenty), uberKeyed(), sethvargo(plenty), throttle(plenty),
			}
		}},
		{"100,000 keys, refused", 2, many, false, func() []contender {
			return []contender{
				limitKeyed(many), weirKeyed("weir", spent),
				xtimeKeyed(spent), sethvargo(spent), throttle(spent),
			}
		}},
		{"100,000 keys asked by a Zipf law, admitted", 2, zipf(many), true, func() []contender {
			return []contender{
				limitKeyed(many), weirKeyed("weir", limiter.MaxLimit),
				xtimeKeyed(plenty), sethvargo(plenty), throttle(plenty),
			}
		}},
	}
}

// compare makes the table of a case.
func compare(c benchCase, procs int, figures []figure) *table {
	limit, ours := figures[0], figures[1]
	t := &table{
		title: fmt.Sprintf("%s, GOMAXPROCS %d", c.name, procs),
		head:  []string{"", "ns/op", "allocs/op", "× limit", "95 %", "weir is faster by", ""},
	}
	for _, f := range figures {
		ns, _, _ := median(f.ns)
		ratio, low, high := median(ratios(f, limit))
		ahead, verdict := "", ""
		if f.name != limit.name && !f.ours {
			gain, low, high := median(ratios(f, ours))
			ahead = fmt.Sprintf("%.1f× (%.1f–%.1f)", gain, low, high)
		}
		switch {
		case f.wrong && f.name != limit.name:
			verdict = "decides otherwise!"
		case f.name == ours.name:
			verdict = fmt.Sprintf("goal ≤ %.1f: %s", c.goal, judge(ratio, high, c.goal, f.allocs))
		}
		t.add(f.name, fmt.Sprintf("%.1f", ns), fmt.Sprintf("%.2f", f.allocs), fmt.Sprintf("%.2f", ratio),
			fmt.Sprintf("%.2f–%.2f", low, high), ahead, verdict)
	}
	return t
}

// judge says whether a ratio reaches its goal, and whether the rounds agree.
func judge(ratio, high, goal, allocs float64) string {
	switch {
	case ratio > goal || allocs > 0.001:
		return "missed"
	case high > goal:
		return "met by the median only"
	default:
		return "met"
	}
}

// makeKeys returns n keys as long as a hashed API key, in random order.
func makeKeys(n int) []string {
	rng := rand.New(rand.NewPCG(1, 1))
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%016x%016x", rng.Uint64(), rng.Uint64())
	}
	return keys
}

// zipf returns as many requests as keys, for keys with a Zipf distribution: some are far
// more popular than others.
func zipf(keys []string) []string {
	law := rand.NewZipf(rand.New(rand.NewPCG(2, 2)), 1.1, 1, uint64(len(keys)-1))
	out := make([]string, len(keys))
	for i := range out {
		out[i] = keys[law.Uint64()]
	}
	return out
}

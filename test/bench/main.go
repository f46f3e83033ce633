package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

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

func main() {
	begin := time.Now()
	fmt.Printf("%s %s/%s, %d processors, %s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpu())
	out := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	for _, procs := range []int{1, 2} {
		for _, c := range cases() {
			report(out, c, procs, measure(c.contenders(), c.keys, procs, c.allowed))
		}
	}
	_ = out.Flush()
	fmt.Printf("\n%d rounds in %s\n", rounds, time.Since(begin).Round(time.Second))
}

func cases() []benchCase {
	one, many := []string{"key"}, makeKeys(100_000)
	return []benchCase{
		{"one hot key, admitted", 1.5, one, true, func() []contender {
			return []contender{
				limitOne(), weirHandle("weir", "key", limiter.MaxLimit, limiter.MaxLimit),
				xtimeOne(plenty), uberOne(), sethvargo(plenty), throttle(plenty),
				weirHandle("weir, store asked every 100", "key", limiter.MaxLimit, 100),
			}
		}},
		{"one hot key, refused", 1.5, one, false, func() []contender {
			return []contender{
				limitRefuse(), weirHandle("weir", "key", spent, 1),
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
	}
}

func report(out *tabwriter.Writer, c benchCase, procs int, figures []figure) {
	limit, ours := figures[0], figures[1]
	fmt.Fprintf(out, "\n%s, GOMAXPROCS %d\tns/op\tallocs/op\t× limit\t95 %%\tweir is faster by\t\n", c.name, procs)
	for _, f := range figures {
		ns, _, _ := median(f.ns)
		ratio, low, high := median(ratios(f, limit))
		ahead := ""
		if f.name != limit.name && f.name != ours.name {
			gain, low, high := median(ratios(f, ours))
			ahead = fmt.Sprintf("%.1f× (%.1f–%.1f)", gain, low, high)
		}
		verdict := ""
		switch {
		case f.wrong && f.name != limit.name:
			verdict = "decides otherwise!"
		case f.name == ours.name:
			verdict = fmt.Sprintf("goal ≤ %.1f: %s", c.goal, judge(ratio, high, c.goal, f.allocs))
		}
		fmt.Fprintf(out, "  %s\t%.1f\t%.2f\t%.2f\t%.2f–%.2f\t%s\t%s\n", f.name, ns, f.allocs, ratio, low, high, ahead, verdict)
	}
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

// cpu names the processor where the system tells.
func cpu() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "processor unknown"
	}
	for line := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	return "processor unknown"
}

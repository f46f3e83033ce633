package main

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weir-dev/weir/test/bench/traffic"
)

// TestProcessorTimeIsBesideHAProxy, and the goal is that of the protocol.
func TestProcessorTimeIsBesideHAProxy(t *testing.T) {
	w := fiveWays()
	var took []costs
	for _, us := range []float64{10, 80, 50, 25, 20} {
		var c costs
		for range rounds {
			c.wall = append(c.wall, 100_000)
			c.processor = append(c.processor, us*1000)
		}
		took = append(took, c)
	}
	for name, tc := range map[string]struct {
		of      proxyCase
		title   string
		verdict string
	}{
		"HTTP/1.1": {overHTTP1(1, small), "Processor time of a request: HTTP/1.1, 1 connection", "goal ≤ 1.5 × haproxy: missed"},
		"gRPC":     {overGRPC(4, 8, unary), "Processor time of a message: gRPC unary, 4 connections with 8 calls each", "goal ≤ 3.0 × haproxy: met"},
	} {
		got := w.costTable(tc.of, took)
		if got.title != tc.title {
			t.Errorf("the title is %q, want %q", got.title, tc.title)
		}
		for row, want := range map[string][]string{
			"bare ReverseProxy": {"10000", "80.0", "3.20", "3.20–3.20", "1.60", "1.60–1.60", ""},
			"weir":              {"10000", "50.0", "2.00", "2.00–2.00", "1.00", "1.00–1.00", tc.verdict},
		} {
			if cells := rowOf(t, got, row); !slices.Equal(cells[1:], want) {
				t.Errorf("%s: %s has %q, want %q", name, row, cells[1:], want)
			}
		}
	}
}

// A burner is a load that takes processor time of this process.
type burner struct{ traffic.Load }

// Closed implements traffic.Load.
func (burner) Closed(time.Time) (int, error) {
	before, err := processClock(os.Getpid())
	for now := before; err == nil && now < before+5*time.Millisecond; {
		now, err = processClock(os.Getpid())
	}
	return 10, err
}

// TestATurnTakesWhatTheProcessUses, finer than the ticks of the kernel.
func TestATurnTakesWhatTheProcessUses(t *testing.T) {
	wall, processor, err := turn(burner{}, os.Getpid())
	if err != nil || wall <= 0 || processor < 500_000 {
		t.Errorf("a request took %g ns, %g of the processors, %v", wall, processor, err)
	}
	if _, _, err := turn(burner{}, 1<<26); err == nil {
		t.Error("a process that does not exist has used something")
	}
}

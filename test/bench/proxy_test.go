package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// fiveWays are those that are measured, without processes.
func fiveWays() *ways {
	w := new(ways)
	for _, name := range []string{"direct", "bare ReverseProxy", "weir", "haproxy", "nginx"} {
		w.all = append(w.all, &way{name: name})
	}
	return w
}

// rowOf returns the cells of a row by its first one.
func rowOf(t *testing.T, from *table, name string) []string {
	t.Helper()
	for _, row := range from.rows {
		if row[0] == name {
			if len(row) != len(from.head) {
				t.Errorf("%s has %d cells, the head %d", name, len(row), len(from.head))
			}
			return row
		}
	}
	t.Fatalf("there is no row %q", name)
	return nil
}

// TestAddedLatencyIsBesideHAProxyAndTheBareProxy.
func TestAddedLatencyIsBesideHAProxyAndTheBareProxy(t *testing.T) {
	const us = float64(time.Microsecond)
	w := fiveWays()
	var taken []latencies
	for _, added := range []float64{0, 400, 240, 200, 100} {
		var l latencies
		for _, base := range []float64{100, 300, 200} {
			l.p50 = append(l.p50, (base+added)*us)
			l.p99 = append(l.p99, (base+10*added)*us)
		}
		taken = append(taken, l)
	}
	c := openCase{overHTTP1(32, small), goalRate, time.Second, 3}
	got := w.latencyTable(c, taken)
	if want := "Through a proxy, HTTP/1.1, 32 connections, 1,000/s"; got.title != want {
		t.Errorf("the title is %q, want %q", got.title, want)
	}
	for name, want := range map[string][]string{
		"direct": {"200", "200", "", "", "", "", "", "", ""},
		"weir": {
			"440", "2600", "240", "1.20 (1.20–1.20)", "0.60 (0.60–0.60)", "2400", "1.20 (1.20–1.20)", "0.60 (0.60–0.60)",
			"p50 added, goal ≤ 1.3 × haproxy: met; p99 added, goal ≤ 1.25 × bare: met",
		},
		"haproxy": {"400", "2200", "200", "1.00 (1.00–1.00)", "0.50 (0.50–0.50)", "2000", "1.00 (1.00–1.00)", "0.50 (0.50–0.50)", ""},
	} {
		if row := rowOf(t, got, name); !slices.Equal(row[1:], want) {
			t.Errorf("%s has %q, want %q", name, row[1:], want)
		}
	}
	c.perSecond = 100
	if row := rowOf(t, w.latencyTable(c, taken), "weir"); row[9] != "" {
		t.Errorf("at another rate than that of the goal, it says %q", row[9])
	}
}

// TestCasesOfProxiesHaveNamesOfTheirOwn, and hold both loops, both protocols and all sizes.
func TestCasesOfProxiesHaveNamesOfTheirOwn(t *testing.T) {
	var open, closed []string
	for _, c := range openCases() {
		open = append(open, c.name+", "+grouped(int64(c.perSecond)))
		if c.rounds%2 == 0 {
			t.Errorf("%s has %d rounds, and none of them is the middle one", c.name, c.rounds)
		}
	}
	for _, c := range closedCases() {
		closed = append(closed, c.name)
	}
	for _, names := range [][]string{open, closed} {
		slices.Sort(names)
		if distinct := slices.Compact(slices.Clone(names)); len(distinct) != len(names) {
			t.Errorf("of %q some are the same", names)
		}
		all := strings.Join(names, "\n")
		for _, part := range []string{
			"HTTP/1.1, 1 connection,", "HTTP/1.1, 32 connections,", "HTTP/1.1, 1,000 connections,", "answers of 64 KiB", "POST of 64 KiB",
			"gRPC unary, 1 connection", "gRPC unary, 1,000 connections", "gRPC streams both ways, 4 connections with 8 calls each",
		} {
			if !strings.Contains(all+",", strings.TrimSuffix(part, ",")) {
				t.Errorf("there is no case with %q in %q", part, names)
			}
		}
	}
}

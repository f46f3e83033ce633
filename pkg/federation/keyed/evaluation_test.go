package keyed_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/proof/explore/pages"
	"github.com/weir-dev/weir/pkg/federation/keyed"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// TestEveryKeyStaysWithinItsLimitWhateverFails offers values to three regions by Zipf's law while
// something fails. With -update it offers as many as docs/federation.md says, and writes the
// table there, otherwise a tenth of them: then it requires that the page has the same rows.
func TestEveryKeyStaysWithinItsLimitWhateverFails(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("| in the middle of the time, or always | Δ of the worst value | admitted of what could be | by a static split | messages for an admitted request | messages to a central counter | writes a second |\n|---|---|---|---|---|---|---|\n")
	for _, c := range trials() {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { rows.WriteString(c.run(t, whole())) })
		})
	}
	if t.Failed() {
		return
	}
	here := pages.Source("pkg/federation/keyed")
	if whole() {
		here.Shows(t, "docs/federation.md", "values while something fails", rows.String())
		return
	}
	shown := here.Shown(t, "docs/federation.md", "values while something fails")
	for _, c := range trials() {
		if !strings.Contains(shown, "| "+c.name+" | 0 |") {
			t.Errorf("docs/federation.md has not the row %q", c.name)
		}
	}
	if got, want := strings.Count(shown, "\n"), len(trials())+2; got != want {
		t.Errorf("docs/federation.md has %d lines of them, want %d: run the command in its comment", got, want)
	}
}

// whole reports whether all values are offered.
func whole() bool { return pages.Updating() }

// A load is what a town is offered.
type load struct {
	began   time.Time
	first   int64              // window
	offered [3]map[place]int64 // by regions, where they reach the coordinator
	sent    [3]int64           // requests
}

const (
	trialLimit, trialWindow, trialWindows = 20, 10 * time.Second, 3
	trialTime                             = trialWindows * trialWindow
)

// offer has each region ask for values until the time is over. Most values are in demand as often
// with a tenth of the requests, because there is a tenth of the values.
func (c *trial) offer(w *town, part int) *load {
	l := &load{began: time.Now(), first: int64(w.hub.Now()) / int64(w.params.Window), offered: [3]map[place]int64{{}, {}, {}}}
	var all sync.WaitGroup
	for region := range w.regions {
		own := rand.New(rand.NewPCG(1, uint64(region)))
		zipf := rand.NewZipf(own, 1.05, 1, uint64(10_000/part)-1)
		share := 1000 / part * (1 + region) / 2 // regions differ in demand
		all.Go(func() {
			for time.Since(l.began) < trialTime {
				key := int(zipf.Uint64())
				if c.reaches == nil || c.reaches(region, time.Since(l.began)) {
					l.offered[region][place{fmt.Sprint("k", key), int64(w.hub.Now()) / int64(w.params.Window)}]++
				}
				l.sent[region]++
				all.Go(func() { w.ask(region, key, 1, 1) })
				time.Sleep(time.Duration(own.ExpFloat64() * float64(time.Second) / float64(share)))
			}
		})
	}
	for _, e := range c.events {
		time.Sleep(time.Until(l.began.Add(e.at)))
		e.do(w)
	}
	all.Wait()
	time.Sleep(time.Second) // calls of the hub that nobody waits for end
	return l
}

// run returns the row.
func (c *trial) run(t *testing.T, all bool) string {
	part := 10
	if all {
		part = 1
	}
	p := params(trialLimit, trialWindow)
	p.Block, p.Keys = 2, max(int64(c.hubKeys/part), 1)
	if c.hubKeys == 0 {
		p.Keys = ledger.MaxKeys
	}
	p.Overrides = c.overrides
	w := newTown(t, p, 20*time.Millisecond, func(cfg *keyed.Config) { cfg.Keys = c.keys / part })
	kept := c.begin(w)
	w.nextWindow()
	l := c.offer(w, part)
	w.requireWithin()
	return c.row(t, w, l, kept)
}

// row returns what came of it.
func (c *trial) row(t *testing.T, w *town, l *load, kept *shelf) string {
	could, split := map[place]int64{}, int64(0)
	for _, part := range l.offered {
		for at, n := range part {
			could[at] += n
			split += min(n, w.params.LimitOf(at.hash)/3)
		}
	}
	var most, admitted, over int64
	for at, n := range could {
		if at.index < l.first+trialWindows {
			most += min(n, w.params.LimitOf(at.hash))
			admitted += min(w.admitted[at], n)
			over = max(over, w.admitted[at]-w.params.LimitOf(at.hash))
		}
	}
	used, seen := float64(admitted)/float64(most), w.hub.Seen()
	row := fmt.Sprintf("| %s | %d | %.3f | %.3f | %.2f | %.2f | %.1f |\n", c.name, over, used, float64(split)/float64(most), float64(seen.Messages)/float64(admitted),
		float64(l.sent[0]+l.sent[1]+l.sent[2])/float64(admitted), float64(kept.written())/trialTime.Seconds())
	t.Log(row)
	if used < c.least {
		t.Errorf("%.3f of what could be is admitted, want %v", used, c.least)
	}
	return row
}

package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An askedClock is the clock of a store that says what time it is: that of the leading
// controller, which keeps it evenly for as long as it leads.
type askedClock struct {
	mu    sync.Mutex
	terms []term
}

// A term is what one leader answered.
type term struct {
	number      float64
	first, last time.Time     // the machine's time when it answered first and last
	low, high   time.Duration // what its clock is off by lies between both
}

// note adds an answer of a term, shows, that was given between two instants.
func (c *askedClock) note(number float64, before, after, shows time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	low, high := shows.Sub(after), shows.Sub(before)
	if n := len(c.terms); n > 0 && c.terms[n-1].number == number {
		t := &c.terms[n-1]
		if l, h := max(t.low, low-drift), min(t.high, high+drift); l <= h {
			t.low, t.high, t.last = l, h, after
			return
		}
	}
	c.terms = append(c.terms, term{number: number, first: before, last: after, low: low, high: high})
}

// drift is more than a leader's clock may gain or lose, and than a float shows less.
const drift = time.Millisecond

// eras returns the terms. Each may have begun as soon as the one before had answered for
// the last time, and ended when the next one answered.
func (c *askedClock) eras() []era {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []era
	for i, t := range c.terms {
		from, until := t.first, time.Now().Add(time.Hour)
		if i > 0 {
			from = c.terms[i-1].last
		} else {
			from = from.Add(-time.Hour)
		}
		if i+1 < len(c.terms) {
			until = c.terms[i+1].first
		}
		off := (t.low + t.high) / 2
		all = append(all, era{from: from, until: until, shows: func(at time.Time) time.Time { return at.Add(off) }})
	}
	return all
}

// scrape reads the metrics without labels that an address serves.
func scrape(ctx context.Context, client *http.Client, address string) (map[string]float64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, resp.Status)
	}
	figures := map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil && !strings.HasPrefix(name, "#") {
			figures[name] = v
		}
	}
	return figures, lines.Err()
}

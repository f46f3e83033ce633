package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/pkg/limiter"
)

const (
	hotKeys    = 64 // of the limit
	hotPerRow  = 8  // that each holder names in a row
	auditTime  = 20 // seconds that are measured, after as many that fill what is kept
	auditEvery = 500 * time.Millisecond
)

// measureAudit measures the audit of one limit by itself, whose holders each admit of hot
// keys every second, so that together they admit more than the limit of each.
func measureAudit(_ context.Context, w *world) (section, error) {
	s := section{head: []string{"holders", "without keys, CPU a second", "with hot keys"}}
	for _, n := range []int{100, 1000, 10_000} {
		plain, keyed := auditCost(n, false), auditCost(n, true)
		s.row(count(n), micros(plain), micros(keyed))
		s.point("without keys", n, plain.Seconds())
		s.point("with hot keys", n, keyed.Seconds())
		s.last = []goal{{fmt.Sprintf("audit of %s holders with hot keys, CPU a second", count(n)), "≤ 0.1 s", seconds(keyed)}}
		w.say("audit of %d holders: %s, with hot keys %s", n, micros(plain), micros(keyed))
	}
	return s, nil
}

// auditCost returns how long the audit works on the reports of n holders in a second.
func auditCost(n int, keyed bool) time.Duration {
	now := time.Unix(1_800_000_000, 0)
	rate := limiter.Rate{Limit: 1000, Window: limiter.Second}
	l := audit.New(time.Second, audit.Config{Generation: 1, Promise: audit.Promise{Rates: []limiter.Rate{rate}}, Keyed: keyed}, now)
	holders := make([]audit.Holder, n)
	for i := range holders {
		holders[i] = audit.NewHolder(fmt.Sprintf("pod-%05d", i), "1")
		l.Join(holders[i], now)
	}
	hashes := make([]string, hotKeys)
	for i := range hashes {
		hashes[i] = fmt.Sprintf("%032d", i)
	}
	var took time.Duration
	for second := range int64(2 * auditTime) {
		reports := make([]audit.Report, n)
		for i := range reports {
			var keys []audit.KeyCount
			for k := 0; keyed && k < hotPerRow; k++ {
				keys = append(keys, audit.KeyCount{Hash: hashes[(i+k)%hotKeys], Admitted: 1})
			}
			reports[i] = audit.Report{Generation: 1, Rows: rowsAt(now, rate, keys), Totals: audit.Totals{Admitted: (second + 1) * (hotPerRow + 2)}}
		}
		began := time.Now()
		for i, r := range reports {
			l.Report(holders[i], r, now)
		}
		for range 2 {
			now = now.Add(auditEvery)
			for _, q := range l.Advance(now) {
				answer(l, q, hashes)
			}
			l.Figures(now)
		}
		if second >= auditTime {
			took += time.Since(began)
		}
	}
	return took / auditTime
}

// rowsAt returns what a holder reports once a second: the window before, which is over, and the
// one that is open. It admitted more in each than the keys that it names.
func rowsAt(now time.Time, rate limiter.Rate, keys []audit.KeyCount) (rows []audit.Row) {
	for _, at := range []time.Time{now.Add(-time.Second), now} {
		row := audit.Row{Final: at.Before(now), Admitted: hotPerRow + 2, Keys: keys}
		row.Windows.Open[0], row.Windows.N = rate.WindowAt(limiter.Instant(at.UnixMicro())), 1
		rows = append(rows, row)
	}
	return rows
}

// answer replies for every holder that is asked, with as many of the keys as it used.
func answer(l *audit.Limit, q audit.Query, hashes []string) {
	keys := make([]audit.KeyCount, hotPerRow+2)
	for i, h := range q.Holders {
		for k := range keys {
			keys[k] = audit.KeyCount{Hash: hashes[(i+k)%hotKeys], Admitted: 1}
		}
		l.Reply(h, q.ID, keys, false)
	}
}

func micros(d time.Duration) string { return d.Round(time.Microsecond).String() }

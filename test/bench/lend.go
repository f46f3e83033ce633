package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// lendingTurn is one lender's turn: as long as a window, so that what a window costs when
// it begins is in every turn.
const lendingTurn = time.Duration(budgetWindow) * time.Microsecond

// A lender grants leases to callers, each of which takes one after another.
type lender struct {
	name   string
	lease  func(caller int) error // of leaseUnits
	writes func() int64           // to the API server so far; nil when it has none
	close  func()
}

// lent is what one lender did.
type lent struct {
	figure            // its trips are writes to the API server
	writes  []float64 // a second, by round; nil when it has no API server
	windows int64     // that its turns met
	refused int64     // leases that were not granted in full
	why     error     // the first of them was not
}

// lend lets the lenders take turns.
func lend(lenders []lender, callers int) []lent {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	all := make([]lent, len(lenders))
	for i, l := range lenders {
		all[i].name = l.name
		settle(l, callers)
	}
	for range rounds {
		for i, l := range lenders {
			all[i].turn(l, callers)
		}
	}
	for _, l := range lenders {
		l.close()
	}
	return all
}

// settle waits until every caller was granted a lease: a coordinator that is new serves
// no window that began before it.
func settle(l lender, callers int) {
	for caller := range callers {
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
			if l.lease(caller) == nil {
				break
			}
		}
	}
}

func (l *lent) turn(from lender, callers int) {
	var wait sync.WaitGroup
	var granted, refused atomic.Int64
	var why sync.Once
	written := from.written()
	begin := time.Now()
	for caller := range callers {
		wait.Go(func() {
			for time.Since(begin) < lendingTurn {
				if err := from.lease(caller); err != nil {
					refused.Add(1)
					why.Do(func() { l.why = err })
					continue
				}
				granted.Add(1)
			}
		})
	}
	wait.Wait()
	end := time.Now()
	l.ns = append(l.ns, float64(end.Sub(begin).Nanoseconds())/float64(granted.Load()))
	l.ops += int(granted.Load())
	l.refused += refused.Load()
	l.windows += windowOf(end) - windowOf(begin) + 1
	if from.writes != nil {
		writes := from.written() - written
		l.trips += writes
		l.writes = append(l.writes, float64(writes)/end.Sub(begin).Seconds())
	}
}

func windowOf(t time.Time) int64 { return t.UnixMicro() / int64(budgetWindow) }

func (l lender) written() int64 {
	if l.writes == nil {
		return 0
	}
	return l.writes()
}

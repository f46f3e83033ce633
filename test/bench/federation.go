package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// The budget that leases are taken from. No contender uses up the limit in a window.
const (
	leaseUnits   = 16
	budgetLimit  = int64(64_000_000)
	budgetWindow = limiter.Second
	blockPercent = 10
	budgetBlock  = budgetLimit * blockPercent / 100
)

// budgetMembers are the regions that share the budget.
var budgetMembers = []string{"region-a", "region-b", "region-c"}

// budget returns the parameters of the budget.
func budget() ledger.Params {
	p := ledger.Params{Limit: budgetLimit, Window: budgetWindow, Block: budgetBlock}
	for _, name := range budgetMembers {
		p.Members = append(p.Members, ledger.Member{Name: name, Weight: 1, Borrowing: -1})
	}
	return p
}

// overFederation sets coordinators of federated budgets beside one transaction of etcd
// for each lease.
func overFederation(show func(*table)) error {
	b, err := startBackends()
	if err != nil {
		return err
	}
	defer b.stop()
	for _, callers := range []int{1, 16} {
		lenders, err := b.lenders(callers)
		if err != nil {
			return err
		}
		show(leaseTable(callers, lend(lenders, callers)))
	}
	return nil
}

// leaseTable makes the table of lenders. The first one is the limit.
func leaseTable(callers int, lent []lent) *table {
	t := &table{
		title: fmt.Sprintf("Leases of %d units, callers: %d", leaseUnits, callers),
		note: fmt.Sprintf("A budget of %d units in %v over %d members, leased by holders that send a command when the one before was answered. "+
			"The limit is one compare-and-swap transaction of etcd for each lease, on a key of each caller so that none meets another; "+
			"beside it the same on the one key that a shared limit needs. Kubernetes grants from blocks of %d %% that it wrote to a ConfigMap before, "+
			"through an API server over the same etcd, and shall write at most once for half a block and once for a window. "+
			"etcd is one member and no server waits for a disk, which favours the transactions. Turns take %v.",
			budgetLimit, time.Duration(budgetWindow)*time.Microsecond, len(budgetMembers), blockPercent, lendingTurn),
		head: []string{"", "leases/s", "× " + lent[0].name, "95 %", "API writes/s", ""},
	}
	for _, l := range lent {
		ns, _, _ := median(l.ns)
		ratio, low, high := median(ratios(lent[0].figure, l.figure))
		writes := ""
		if l.writes != nil {
			mid, _, _ := median(l.writes)
			writes = fmt.Sprintf("%.1f", mid)
		}
		t.add(l.name, fmt.Sprintf("%.0f", 1e9/ns), fmt.Sprintf("%.2f", ratio), fmt.Sprintf("%.2f–%.2f", low, high), writes, l.verdict())
	}
	return t
}

// verdict says what a lender did not grant, and whether it wrote no more than it may.
func (l *lent) verdict() string {
	var said []string
	if l.refused > 0 {
		said = append(said, fmt.Sprintf("%d not granted! (%v)", l.refused, l.why))
	}
	if l.writes != nil {
		said = append(said, fmt.Sprintf("%d writes for %d leases, goal ≤ %d: %s",
			l.trips, l.ops, l.mostWrites(), met(l.trips <= l.mostWrites())))
	}
	return strings.Join(said, ". ")
}

// mostWrites is how often blocks are written at most: once for half a block, and once
// for each window, including those in which a turn begins and ends.
func (l *lent) mostWrites() int64 {
	return int64(l.ops)*leaseUnits/(budgetBlock/2) + l.windows
}

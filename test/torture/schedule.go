package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A kind is a way in which something breaks.
type kind string

// The kinds of faults.
const (
	killSidecar   kind = "kill a sidecar"
	pauseSidecar  kind = "pause a sidecar"
	killStore     kind = "kill a store"
	pauseStore    kind = "pause a store"
	cutStore      kind = "cut a store off"
	delayStore    kind = "delay what goes to a store"
	loseStore     kind = "kill a store, which comes back with another clock"
	flushStore    kind = "delete all keys of a store"
	promoteStore  kind = "kill a store and promote its replica"
	failOver      kind = "order a store to fail over"
	fillDisk      kind = "fill the disk of a store"
	setStoreClock kind = "set a store's clock"
	setNodeClock  kind = "set a node's clock"
	killLeader    kind = "kill a controller"
	stopLeader    kind = "stop a controller in good order"
	pauseLeader   kind = "pause a controller"
	cutFleet      kind = "cut sidecars off the controller"
	delayFleet    kind = "delay what goes to the controller"
	pauseServer   kind = "pause the API server"
	cutHub        kind = "cut a cluster off the hub of its budget"
	delayHub      kind = "delay what goes to the hub of a budget"
	editPolicy    kind = "edit a policy"
	movePolicy    kind = "move a policy to another store"
)

// kinds are drawn from; those that are there twice happen more often.
var kinds = []kind{
	killSidecar, pauseSidecar, killStore, pauseStore, cutStore, delayStore, setStoreClock, setStoreClock,
	setNodeClock, killLeader, stopLeader, pauseLeader, cutFleet, delayFleet, loseStore, loseStore, flushStore, editPolicy,
	promoteStore, promoteStore, pauseServer, fillDisk, failOver, movePolicy, movePolicy, movePolicy,
	cutHub, cutHub, delayHub,
}

// A fault is something that breaks at an instant of a run, and heals.
type fault struct {
	at, lasts time.Duration
	kind      kind
	shop      int           // of faults of sidecars and policies
	target    int           // index of a store, a controller or a node
	by        time.Duration // of clocks and delays
	limit     int64         // of edits
}

func (f fault) String() string {
	s := fmt.Sprintf("%s %d", f.kind, f.target)
	if f.kind == editPolicy {
		return fmt.Sprintf("%s, of shop %d: limit %d", f.kind, f.shop, f.limit)
	}
	if f.kind == killSidecar || f.kind == pauseSidecar {
		s = fmt.Sprintf("%s of shop %d on node %d", f.kind, f.shop, f.target)
	}
	if f.by != 0 {
		s += " by " + f.by.String()
	}
	return s + " for " + f.lasts.String()
}

// victim is what two faults must not break at a time.
func (f fault) victim() string {
	switch f.kind {
	case killSidecar, pauseSidecar:
		return fmt.Sprintf("sidecar %d/%d", f.shop, f.target)
	case killStore, pauseStore, loseStore, flushStore, promoteStore, fillDisk, failOver:
		return fmt.Sprintf("store %d", f.target)
	case cutStore, delayStore:
		return fmt.Sprintf("link %d", f.target)
	case killLeader, stopLeader, pauseLeader:
		return fmt.Sprintf("controller %d", f.target)
	case editPolicy, movePolicy:
		return fmt.Sprintf("policy %d", f.shop)
	case cutFleet, delayFleet:
		return fmt.Sprintf("fleet %d", f.target)
	case pauseServer:
		return fmt.Sprintf("API server %d", f.target)
	case cutHub, delayHub:
		return "hub"
	default:
		return fmt.Sprintf("%s %d", f.kind, f.target)
	}
}

// happensTo reports whether the fault is one of its target.
func (f fault) happensTo(kept []server, shops []terms, sites int) bool {
	switch f.kind {
	case flushStore:
		return kept[f.target].isRedis
	case promoteStore:
		return kept[f.target].replica
	case cutHub, delayHub:
		return sites > 1
	case failOver:
		return kept[f.target].pairs > 0
	case fillDisk:
		return kept[f.target].writes()
	case editPolicy:
		return shops[f.shop].edits()
	case movePolicy:
		return shops[f.shop].moves()
	default:
		return true
	}
}

// schedule returns the faults of a run: the same for the same seed. It is given what the
// servers are that keep counters what the shops are, and how many clusters there are; the
// controllers' nodes and the controller's store are the last.
func schedule(seed uint64, lasts time.Duration, kept []server, shops []terms, sites int) []fault {
	servers := len(kept)
	random := rand.New(rand.NewPCG(seed, 2))
	between := func(from, to time.Duration) time.Duration {
		return (from + time.Duration(random.Int64N(int64(to-from)))).Round(time.Millisecond)
	}
	busy := map[string]time.Duration{}
	clocks := make([]steps, servers)
	var all []fault
	for at := time.Duration(0); at < lasts; at += between(200*time.Millisecond, 3*time.Second) {
		f := fault{at: at, lasts: between(300*time.Millisecond, 7*time.Second), kind: kinds[random.IntN(len(kinds))], shop: random.IntN(len(shops))}
		switch f.kind {
		case killSidecar, pauseSidecar:
			f.target = random.IntN(nodes)
		case setNodeClock:
			most := 2 * time.Minute
			if sites > 1 {
				most = 4 * time.Second // the hub grants by it
			}
			f.target, f.by, f.lasts = random.IntN(sites*perSite), between(-most, most), 0
		case setStoreClock:
			f.target, f.lasts = random.IntN(servers), 0
			f.by = []time.Duration{between(-3*time.Second, 3*time.Second), between(-25*time.Second, 40*time.Second)}[random.IntN(2)]
		case killStore, pauseStore, cutStore, promoteStore, fillDisk:
			f.target = random.IntN(servers)
		case loseStore:
			f.target, f.by = random.IntN(servers), between(-25*time.Second, 20*time.Second)
		case flushStore, failOver:
			f.target, f.lasts = random.IntN(servers), 0
		case killLeader, stopLeader, pauseLeader:
			f.target = random.IntN(sites * controllers)
		case editPolicy:
			f.limit, f.lasts = []int64{limit / 2, limit, limit * 3 / 2}[random.IntN(3)], 0
		case movePolicy:
			if f.target, f.lasts = random.IntN(servers), between(2*time.Second, 20*time.Second); f.target >= shops[f.shop].at {
				f.target++
			}
		case delayStore:
			f.target, f.by = random.IntN(servers), between(5*time.Millisecond, 400*time.Millisecond)
		case cutFleet, pauseServer:
			f.target = random.IntN(sites)
		case cutHub: // there is one
		case delayHub:
			f.by = between(5*time.Millisecond, 400*time.Millisecond)
		case delayFleet:
			f.target, f.by = random.IntN(sites), between(5*time.Millisecond, 400*time.Millisecond)
		}
		if at+f.lasts > lasts || busy[f.victim()] > at || !f.happensTo(kept, shops, sites) {
			continue
		}
		if f.kind == setStoreClock || f.kind == loseStore {
			f.by = clocks[f.target].step(at+f.lasts, f.by)
		}
		busy[f.victim()] = at + f.lasts + time.Second
		all = append(all, f)
	}
	return all
}

// longestBack is how far a store's clock is behind the newest instant that it showed, at
// most: until it has caught up nothing is granted, so a run lasts that much longer.
const longestBack = 40 * time.Second

// steps are what a clock was set by.
type steps struct{ offset, newest time.Duration }

// step returns what the clock is set by at an instant of the run: as far as is wanted, or
// the other way if it would be set back too far.
func (s *steps) step(at, by time.Duration) time.Duration {
	s.newest = max(s.newest, at+s.offset)
	if s.newest-(at+s.offset+by) > longestBack {
		by = -by
	}
	s.offset += by
	return by
}

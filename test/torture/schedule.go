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
	editPolicy    kind = "edit a policy"
	movePolicy    kind = "move a policy to another store"
)

// kinds are drawn from; those that are there twice happen more often.
var kinds = []kind{
	killSidecar, pauseSidecar, killStore, pauseStore, cutStore, delayStore, setStoreClock, setStoreClock,
	setNodeClock, killLeader, stopLeader, pauseLeader, cutFleet, delayFleet, loseStore, loseStore, flushStore, editPolicy,
	promoteStore, promoteStore, pauseServer, fillDisk, failOver, movePolicy, movePolicy, movePolicy,
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
		return "fleet"
	case pauseServer:
		return "API server"
	default:
		return fmt.Sprintf("%s %d", f.kind, f.target)
	}
}

// happensTo reports whether the fault is one of its target.
func (f fault) happensTo(kept []server, shops []terms) bool {
	switch f.kind {
	case flushStore:
		return kept[f.target].isRedis
	case promoteStore:
		return kept[f.target].replica
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
// servers are that keep counters and what the shops are; the controllers' nodes and the
// controller's store are the last.
func schedule(seed uint64, lasts time.Duration, kept []server, shops []terms) []fault {
	servers := len(kept)
	random := rand.New(rand.NewPCG(seed, 2))
	between := func(from, to time.Duration) time.Duration {
		return (from + time.Duration(random.Int64N(int64(to-from)))).Round(time.Millisecond)
	}
	busy := map[string]time.Duration{}
	var all []fault
	for at := time.Duration(0); at < lasts; at += between(200*time.Millisecond, 3*time.Second) {
		f := fault{at: at, lasts: between(300*time.Millisecond, 7*time.Second), kind: kinds[random.IntN(len(kinds))], shop: random.IntN(len(shops))}
		switch f.kind {
		case killSidecar, pauseSidecar:
			f.target = random.IntN(nodes)
		case setNodeClock:
			f.target, f.by, f.lasts = random.IntN(nodes+controllers), between(-2*time.Minute, 2*time.Minute), 0
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
			f.target = random.IntN(controllers)
		case editPolicy:
			f.limit, f.lasts = []int64{limit / 2, limit, limit * 3 / 2}[random.IntN(3)], 0
		case movePolicy:
			f.target, f.lasts = random.IntN(servers+1), between(2*time.Second, 20*time.Second)
		case delayStore:
			f.target, f.by = random.IntN(servers), between(5*time.Millisecond, 400*time.Millisecond)
		case cutFleet, pauseServer: // there is one
		case delayFleet:
			f.by = between(5*time.Millisecond, 400*time.Millisecond)
		}
		if at+f.lasts > lasts || busy[f.victim()] > at || !f.happensTo(kept, shops) {
			continue
		}
		busy[f.victim()] = at + f.lasts + time.Second
		all = append(all, f)
	}
	return all
}

package failuremodes_test

import (
	"time"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/internal/testing/redistest"
)

// Faults of servers. Each row starts its own.

// forgets has the server that keeps the budget lose what it knows in the middle of a
// window, and waits until the budget is served again.
func forgets(prepare func(w *world) (loss func())) func(w *world) measured {
	return func(w *world) measured {
		loss := prepare(w)
		w.awaitBusy()
		term, before := w.term(), w.answered()
		loss()
		w.awaitBusy()
		w.awaitBusy()
		if w.term() <= term {
			w.t.Error("nothing was lost")
		}
		return measured{"unserved": w.unserved(before)}
	}
}

func flushes(w *world) func() {
	return func() {
		w.servers.redis.Flush()
		w.servers.redis.FlushScripts()
	}
}

// attaches gives a Redis its first replica, by which it takes another replication ID.
func attaches(w *world) func() { return func() { w.servers.redis.StartReplica() } }

func restarts(w *world) func() { return w.servers.redis.Restart }

// restores starts a Redis with what it knew some windows before.
func restores(w *world) func() {
	w.awaitBusy()
	w.servers.redis.Do("SAVE")
	return w.servers.redis.Restart
}

// promotes kills a Redis whose replica missed its last grants, and makes that the primary.
func promotes(w *world) func() {
	primary := w.servers.redis
	replica := primary.StartReplica()
	w.awaitBusy()
	replica.Pause()
	primary.Do("CLIENT", "KILL", "TYPE", "replica")
	return func() {
		primary.Kill()
		replica.Resume()
		replica.Do("REPLICAOF", "NO", "ONE")
		w.servers.address.move(w.atRedis(replica))
	}
}

func restartsPostgres(w *world) func() { return w.servers.postgres.Restart }
func crashesPostgres(w *world) func()  { return w.servers.postgres.Crash }

// promotesStandby kills a Postgres and promotes its standby, which misses what is not
// logged.
func promotesStandby(w *world) func() {
	primary := w.servers.postgres
	standby := postgrestest.StartIn(w.t, primary.Backup(true))
	return func() {
		primary.Kill()
		standby.Do("SELECT pg_promote()")
		w.servers.address.move(w.atPostgres(standby))
	}
}

// outlasts stops the server for longer than a window without a loss.
func outlasts(w *world) measured {
	w.awaitBusy()
	term, before := w.term(), w.answered()
	w.servers.redis.Pause()
	<-time.After(w.length() + w.length()/2)
	w.servers.redis.Resume()
	w.awaitBusy()
	if w.term() != term {
		w.t.Error("a pause lost the memory")
	}
	return measured{"unserved": w.unserved(before)}
}

// loses has the server of a region's escrow lose what it knows.
func loses(loss func(s *redistest.Server)) func(w *world) measured {
	return func(w *world) measured {
		w.awaitBusy()
		var before map[string]bool
		w.await("the region does not share an escrow", func() bool { // a process whose escrow was slow leased for itself
			before = w.holderNames(0)
			return len(before) == 1
		})
		loss(w.servers.redis)
		var after map[string]bool
		w.await("the region does not share an escrow again", func() bool {
			after = w.holderNames(0)
			return len(after) == 1 && !within(after, before)
		})
		w.awaitBusy()
		return measured{"before": float64(len(before)), "after": float64(len(after))}
	}
}

// holderNames returns the holders that a region has in the open window.
func (w *world) holderNames(region int) map[string]bool {
	s, err := w.regions[region].line.Observe(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	names := map[string]bool{}
	for _, a := range s.Accounts {
		if a.Member == w.params.Members[region].Name {
			names[a.Holder] = true
		}
	}
	return names
}

// within reports whether all names of a set are in another.
func within(names, others map[string]bool) bool {
	for name := range names {
		if !others[name] {
			return false
		}
	}
	return true
}

const (
	amnesia = "It grants nothing of windows that began before its memory did; regions hand on what they were granted before, then refuse"
	open    = "{unserved}, the open one"
	again   = "With the next window, by itself"
)

var oneWindow = figures{"unserved": atMost(1, "windows")}

var lossRows = []row{
	{
		id: "redis-flushed", fault: "The Redis that keeps the budget is flushed, with its scripts",
		does: amnesia, lost: open, heals: again,
		runs: onRedis, setup: setup{load: press, coordinator: onARedis}, figures: oneWindow,
		prove: forgets(flushes),
	},
	{
		id: "redis-restarted", fault: "The Redis that keeps the budget is killed and starts empty",
		does: amnesia, lost: open, heals: again,
		runs: onRedis, setup: setup{load: press, coordinator: onARedis}, figures: oneWindow,
		prove: forgets(restarts),
	},
	{
		id: "redis-restored", fault: "The Redis that keeps the budget is killed and starts with a dump that is some windows old",
		does: amnesia, lost: open, heals: again,
		runs: onRedis, setup: setup{load: press, coordinator: onARedis}, figures: oneWindow,
		prove: forgets(restores),
	},
	{
		id: "redis-replicated", fault: "The Redis that keeps the budget gets its first replica, by which it seems to be another",
		does: amnesia, lost: open, heals: again,
		runs: onRedis, setup: setup{load: press, coordinator: onARedis}, figures: oneWindow,
		prove: forgets(attaches),
	},
	{
		id: "redis-failover", fault: "The Redis that keeps the budget is killed, and a replica that missed its last grants takes over",
		does: amnesia, lost: open, heals: again,
		runs: onRedis, setup: setup{load: press, coordinator: onARedis}, figures: oneWindow,
		prove: forgets(promotes),
	},
	{
		id: "redis-stands-still", fault: "The Redis that keeps the budget does not answer for longer than a window, and loses nothing",
		does:  "Regions hand on what they were granted, then refuse",
		lost:  "The traffic of the outage. When it is over, {unserved} not served",
		heals: "By the next attempts of the regions",
		runs:  onRedis, setup: setup{load: press, coordinator: onARedis}, figures: figures{"unserved": exactly(0, "windows")},
		prove: outlasts,
	},
	{
		id: "postgres-restarted", fault: "The Postgres that keeps the budget is restarted in order",
		does: amnesia, lost: open, heals: again,
		runs: onPostgres, setup: setup{load: press, coordinator: onAPostgres}, figures: oneWindow,
		prove: forgets(restartsPostgres),
	},
	{
		id: "postgres-killed", fault: "All processes of the Postgres that keeps the budget are killed, and it recovers",
		does: amnesia, lost: open, heals: again,
		runs: onPostgres, setup: setup{load: press, coordinator: onAPostgres}, figures: oneWindow,
		prove: forgets(crashesPostgres),
	},
	{
		id: "postgres-failover", fault: "The Postgres that keeps the budget is killed, and its standby is promoted",
		does: amnesia, lost: open, heals: again,
		runs: onPostgres, setup: setup{load: press, coordinator: onAPostgres}, figures: oneWindow,
		prove: forgets(promotesStandby),
	},
	{
		id: "escrow-flushed", fault: "The Redis of a region's shared escrow is flushed",
		does:  "The grants of the old escrow count for a holder that no longer exists ({before}); the escrow that begins has another name, and was granted nothing",
		lost:  "What the escrow held, and slices of the open window",
		heals: "By itself: the region is {after} again, the new one",
		runs:  onRedis, setup: setup{regions: 2, processes: 2, load: press, coordinator: inMemory, escrow: inARedis},
		figures: figures{"before": exactly(1, "holders"), "after": exactly(1, "holders")},
		prove:   loses((*redistest.Server).Flush),
	},
	{
		id: "escrow-restarted", fault: "The Redis of a region's shared escrow is killed and starts empty",
		does:  "The region's controllers lease for themselves until it answers. The grants of the old escrow count for a holder that no longer exists ({before})",
		lost:  "What the escrow held, and slices of the open window",
		heals: "By itself: the region is {after} again, a new one",
		runs:  onRedis, setup: setup{regions: 2, processes: 2, load: press, coordinator: inMemory, escrow: inARedis},
		figures: figures{"before": exactly(1, "holders"), "after": exactly(1, "holders")},
		prove:   loses((*redistest.Server).Restart),
	},
}

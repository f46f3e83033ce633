package births

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// keptBirths is a Store in memory.
type keptBirths struct {
	shards   [Shards][]byte
	versions [Shards]int
	fails    bool
}

func (k *keptBirths) Load(_ context.Context, shard int) ([]byte, string, error) {
	if k.versions[shard] == 0 {
		return nil, "", nil
	}
	return k.shards[shard], fmt.Sprint(k.versions[shard]), nil
}

var errConflict = errors.New("conflict")

func (k *keptBirths) Save(_ context.Context, shard int, data []byte, version string) (string, error) {
	now := ""
	if k.versions[shard] > 0 {
		now = fmt.Sprint(k.versions[shard])
	}
	if k.fails || version != now {
		return "", errConflict
	}
	k.shards[shard] = data
	k.versions[shard]++
	return fmt.Sprint(k.versions[shard]), nil
}

// A fixture has births, and the store that they ask.
type fixture struct {
	t     *testing.T
	kept  *keptBirths
	now   limiter.Instant
	facts store.Facts
	away  error
	fresh []string // policies with a limit that was never in force before
	*Births
}

const birthday = limiter.Instant(500_000 * 3600 * limiter.Second)

func newFixture(t *testing.T, first bool) *fixture {
	c := &fixture{t: t, kept: &keptBirths{}, now: birthday}
	c.remember(1)
	c.lead(first)
	return c
}

// lead begins another term.
func (c *fixture) lead(first bool) {
	c.Births = New(Config{
		Store: c.kept, Clock: func() limiter.Instant { return c.now }, First: first,
		Facts:   func(context.Context, policy.Store) (store.Facts, error) { return c.facts, c.away },
		Created: func(limit store.Scope) { c.fresh = append(c.fresh, limit.Policy) },
	})
}

// remember has the store begin another memory.
func (c *fixture) remember(id limiter.MemoryID) {
	c.facts = store.Facts{
		Now:      7_000_000,
		Volatile: store.Keeping{Memories: []limiter.MemoryID{id}},
		Durable:  store.Keeping{Memories: []limiter.MemoryID{id + 100}},
	}
}

// limited returns a policy of the controller's store.
func limited(window limiter.Micros) policy.Policy {
	return policy.Policy{
		Namespace: "shop", Name: "checkout", Generation: 1, Store: policy.Store{Type: policy.ControllerStore},
		Limits: []policy.Limit{{Name: "all", Rates: []limiter.Rate{{Limit: 10, Window: window}}}},
	}
}

func onRedis(length limiter.Micros, durable bool) policy.Policy {
	p := limited(length)
	p.Store = policy.Store{Type: policy.RedisStore, Address: "redis:6379"}
	p.Limits[0].Retention.Durable = durable
	return p
}

// wants publishes p and looks at its first limit.
func (c *fixture) wants(p policy.Policy, since limiter.Instant, born ...limiter.MemoryID) {
	c.t.Helper()
	s := policy.Snapshot{Cluster: "test", Policies: []policy.Policy{p}}
	if err := c.Fill(c.t.Context(), &s); err != nil {
		c.t.Fatal(err)
	}
	if got := s.Policies[0]; !slices.Equal(got.Limits[0].Retention.Born, born) || got.Since != since {
		c.t.Errorf("born in %v since %d, want %v since %d", got.Limits[0].Retention.Born, got.Since, born, since)
	}
	if p.Limits[0].Retention.Born != nil {
		c.t.Error("what the resolver returned was written to")
	}
}

func (c *fixture) fails(p policy.Policy) {
	c.t.Helper()
	s := policy.Snapshot{Cluster: "test", Policies: []policy.Policy{p}}
	if err := c.Fill(c.t.Context(), &s); err == nil {
		c.t.Error("no error")
	}
}

const day = 24 * 3600 * limiter.Second

// TestTheRecordsOfALimitThatDrawsFromABudgetEnd once.
func TestTheRecordsOfALimitThatDrawsFromABudgetEnd(t *testing.T) {
	c := newFixture(t, true)
	var ended []store.Scope
	c.Moved = func(_ context.Context, of store.Scope) error {
		ended = append(ended, of)
		return nil
	}
	p := onRedis(day, true)
	p.Store = policy.Store{Type: policy.ControllerStore}
	c.wants(p, 0, 101)
	p.Limits = slices.Clone(p.Limits)
	p.Limits[0].Budget = &policy.BudgetRef{ID: "b", Name: "b"}
	for range 2 {
		c.wants(p, 0)
	}
	if want := []store.Scope{{Cluster: "test", Namespace: p.Namespace, Policy: p.Name, Limit: p.Limits[0].Name}}; !slices.Equal(ended, want) {
		t.Errorf("the records of %v ended, want %v", ended, want)
	}
}

func TestALimitIsBornOnce(t *testing.T) {
	c := newFixture(t, true)
	p := onRedis(day, false)
	c.wants(p, 0, 1)
	c.remember(2) // what was granted in memory 1 is lost
	c.wants(p, 0, 1)
	c.lead(false)
	c.wants(p, 0, 1)
	other := p
	other.Name = "other"
	c.wants(other, 0, 2)
	elsewhere := p
	elsewhere.Store.Address = "other:6379"
	c.wants(elsewhere, 0, 2)
	elsewhere.Store.SecretVersion = "2"
	c.remember(3)
	c.wants(elsewhere, 0, 2)
	durable := onRedis(day, true)
	durable.Name = "durable"
	c.wants(durable, 0, 103)
	budget := p
	budget.Limits = slices.Clone(p.Limits)
	budget.Name, budget.Limits[0].Budget = "budget", &policy.BudgetRef{ID: "b", Name: "b"}
	c.wants(budget, 0)
}

// waits publishes p and a policy that was there before, and wants p pending.
func (c *fixture) waits(p, before policy.Policy) {
	c.t.Helper()
	s := policy.Snapshot{Cluster: "test", Policies: []policy.Policy{p, before}}
	err := c.Fill(c.t.Context(), &s)
	if _, held := errors.AsType[*HeldError](err); !held || len(s.Policies) != 2 || !s.Policies[0].Limits[0].Pending || s.Policies[1].Limits[0].Pending {
		c.t.Errorf("put in force: %+v, error %v; want the new limit pending", s.Policies, err)
	}
	if p.Limits[0].Pending {
		c.t.Error("what the resolver returned was written to")
	}
}

// A new limit is not put in force before its store says in which memory it is, so that the
// window that is open is served: as where a database starts at the same time.
func TestANewLimitWaitsForItsStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFixture(t, true)
		before := onRedis(day, false)
		before.Name = "before"
		c.wants(before, 0, 1)
		c.away = errors.New("the database system is starting up")
		c.waits(onRedis(day, false), before)
		time.Sleep(patience - 1)
		c.waits(onRedis(day, false), before)
		c.away = nil
		c.remember(2)
		c.wants(onRedis(day, false), 0, 2) // nobody was sent it in memory 1
	})
}

func TestAStoreThatCannotBeAskedLeavesTheBirthUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFixture(t, true)
		before := onRedis(day, false)
		before.Name = "before"
		c.wants(before, 0, 1)
		c.away = errors.New("no route")
		c.waits(onRedis(day, false), before)
		time.Sleep(patience)
		c.wants(onRedis(day, false), 0)
		c.away = nil
		c.wants(onRedis(day, false), 0)
	})
}

// A limit that was deleted while it waited begins to wait again.
func TestALimitThatIsGoneWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFixture(t, true)
		before := onRedis(day, false)
		before.Name = "before"
		c.wants(before, 0, 1)
		c.away = errors.New("no route")
		c.waits(onRedis(day, false), before)
		if err := c.Sweep(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(patience)
		c.waits(onRedis(day, false), before)
	})
}

func TestWhatIsNotWrittenDownIsNotPutInForce(t *testing.T) {
	c := newFixture(t, true)
	c.wants(onRedis(day, false), 0, 1)
	other := onRedis(day, false)
	other.Name = "other"
	c.kept.fails = true
	c.fails(other)
	c.kept.fails = false
	c.remember(2)
	c.wants(other, 0, 2) // nobody was sent it in memory 1
	// Another leader writes: this one finds out before it sends anything.
	stale := c.Births
	c.lead(false)
	for i := range 100 {
		p := onRedis(day, false)
		p.Name = fmt.Sprint("of-the-next-", i)
		c.wants(p, 0, 2)
	}
	c.Births = stale
	c.remember(3)
	third := onRedis(day, false)
	third.Name = "third"
	c.fails(third)
	c.wants(third, 0, 3)
}

// Limits of a cluster in which somebody led before births were written down may have been
// in force, in windows that are still open.
func TestLimitsThatMayBeOlderThanTheRecordsAreNotNew(t *testing.T) {
	c := newFixture(t, false)
	c.wants(onRedis(day, false), 0)
	c.now = c.now.Add(day - 1)
	late := onRedis(day, false)
	late.Name = "late"
	c.wants(late, 0)
	c.now++
	c.lead(false)
	later := onRedis(day, false)
	later.Name = "later"
	c.wants(later, 0, 1)
	c.wants(onRedis(day, false), 0)
	if want := []string{"later"}; !slices.Equal(c.fresh, want) {
		t.Errorf("policies that were never in force before: %v, want %v", c.fresh, want)
	}
}

// An edit of the retention finds none of the counts that another place has, and brings
// back none that were forgotten.
func TestAnEditOfTheRetentionBeginsAfresh(t *testing.T) {
	c := newFixture(t, true)
	c.wants(onRedis(day, false), 0, 1)
	c.away = errors.New("no route")
	c.fails(onRedis(day, true))
	c.away = nil
	moved := c.facts.Now.Add(retentionTime)
	c.wants(onRedis(day, true), moved)
	c.wants(onRedis(day, true), moved)
	c.facts.Now += 1_000_000
	c.wants(onRedis(day, false), moved+1_000_000)

	here := limited(day) // the controller's store has one place for both
	c.wants(here, 0, 1)
	here.Limits[0].Retention.Durable = true
	c.wants(here, 0, 1)
}

// A birth outlives the limit for as long as a window looks back on it.
func TestABirthOutlivesTheLimit(t *testing.T) {
	c := newFixture(t, true)
	p := onRedis(day, false)
	c.wants(onRedis(3600*limiter.Second, false), 0, 1)
	c.wants(p, 0, 1) // its longest window counts
	there := map[store.Scope]struct{}{{Cluster: "test", Namespace: "shop", Policy: "checkout", Limit: "all"}: {}}
	sweep := func(there map[store.Scope]struct{}) {
		t.Helper()
		if err := c.Sweep(t.Context(), there); err != nil {
			t.Fatal(err)
		}
	}
	c.remember(2)
	sweep(there)
	c.now = c.now.Add(10 * day)
	sweep(nil) // it is gone
	c.now = c.now.Add(day)
	c.lead(false)
	sweep(nil)
	c.wants(p, 0, 1) // it was created again
	sweep(there)
	c.now = c.now.Add(10 * day)
	sweep(nil) // gone since now, not since it was before
	sweep(nil)
	c.wants(p, 0, 1)
	c.now = c.now.Add(day + limiter.Micros(2*SweepInterval.Microseconds()))
	sweep(nil)
	c.wants(p, 0, 2)
}

package region

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

var one = limiter.Command{Op: limiter.Take, Min: 1, Want: 1}

func TestABudgetIsDrawnFromThroughItsOwnObjectOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := own("acme/checkout", 100)
		w := start(t, b)
		defer w.end()
		w.takes(b, 9)
		if res, err := w.apply("shop", b, one); err != nil || res.Granted != 1 {
			t.Errorf("got %+v, %v; want one unit", res, err)
		}
		renamed, other := b, b
		renamed.Name, other.ID = "another", "acme/other"
		for name, err := range map[string]error{
			"another namespace with an object of that name": second(w.apply("bank", b, one)),
			"another object of the namespace":               second(w.apply("shop", renamed, one)),
			"a budget that this cluster does not share":     second(w.apply("shop", other, one)),
		} {
			outage, ok := errors.AsType[*store.UnavailableError](err)
			if !ok || !strings.HasPrefix(outage.Store, `budget "acme/`) || !strings.Contains(err.Error(), "takes no part in FederatedBudget ") {
				t.Errorf("%s: error %v, want an outage", name, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestAnEditKeepsTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := own("acme/checkout", 100)
		w := start(t, b)
		defer w.end()
		w.takes(b, 5)
		edited := b
		edited.Generation, edited.Params.Limit = 2, 50
		w.has(edited)
		w.takes(edited, 5)
		if holders := names(w.local.sent(ledger.Lease)); len(holders) != 1 {
			t.Errorf("holders %v asked, want one: what it has stays good", holders)
		}
		if got := w.set.Observe("shop", "budget").Generation; got != 2 {
			t.Errorf("observed generation %d, want 2", got)
		}
		renamed := edited
		renamed.Name = "renamed"
		w.has(renamed)
		if w.set.Observe("shop", "budget").Generation != 0 || w.set.Observe("shop", "renamed").Generation != 2 {
			t.Error("the budget is not observed by the name of the object that counts now")
		}
		w.takes(renamed, 5)
	})
}

func TestAnEditThatCannotBeWorkedByChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := own("acme/checkout", 100)
		w := start(t, b)
		defer w.end()
		broken := b
		broken.Generation, broken.Params.Limit = 2, 0
		w.has(broken)
		w.takes(b, 5)
		w.mu.Lock()
		w.budgets, w.failure = nil, errors.New("the cache is not synced")
		w.mu.Unlock()
		w.follow()
		w.takes(b, 5)
	})
}

// names returns the holders that sent commands, each once.
func names(commands []ledger.Command) []string {
	var out []string
	for _, c := range commands {
		if !slices.Contains(out, c.Holder) {
			out = append(out, c.Holder)
		}
	}
	return out
}

func TestABudgetThatIsGoneGivesBackWhatItHas(t *testing.T) {
	for name, after := range map[string]func(policy.FederatedBudget) []policy.FederatedBudget{
		"deleted": func(policy.FederatedBudget) []policy.FederatedBudget { return nil },
		"kept by a hub from now on": func(b policy.FederatedBudget) []policy.FederatedBudget {
			return []policy.FederatedBudget{at(b, "hub:1")}
		},
		"of another member": func(b policy.FederatedBudget) []policy.FederatedBudget {
			b.Member = "b"
			return []policy.FederatedBudget{b}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := own("acme/checkout", 100)
				b.Params.Window = 60 * limiter.Second
				w := start(t, b)
				defer w.end()
				w.takes(b, 3)
				if got := w.local.granted(t, b.ID); got <= 3 {
					t.Fatalf("%d units are granted, want some in hand", got)
				}
				next := after(b)
				w.has(next...)
				time.Sleep(time.Second)
				if got := w.local.granted(t, b.ID); got != 3 {
					t.Errorf("%d units are granted afterwards, want the 3 that were handed on", got)
				}
				for _, n := range next {
					w.takes(n, 3)
				}
				if len(next) == 0 && second(w.apply("shop", b, one)) == nil {
					t.Error("a budget that is gone still grants")
				}
			})
		})
	}
}

func TestNewCredentialsReplaceTheConnectionAndNotTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, other := at(own("acme/checkout", 100), "hub:1"), at(own("acme/search", 100), "hub:1")
		other.Name = "other"
		w := start(t, b, other)
		defer w.end()
		w.takes(b, 5)
		w.takes(other, 5)
		if want := []string{"hub:1@1"}; !slices.Equal(w.opened, want) {
			t.Errorf("opened %v, want %v: budgets of one hub share a connection", w.opened, want)
		}
		w.secret("shop/hub", "2")
		w.takes(b, 60)
		w.takes(other, 60)
		if !slices.Equal(w.opened, []string{"hub:1@1", "hub:1@2"}) || !slices.Equal(w.shut(), []string{"hub:1@1"}) {
			t.Errorf("opened %v and closed %v", w.opened, w.shut())
		}
		if holders := names(w.root("hub:1").sent(ledger.Lease)); len(holders) != 2 {
			t.Errorf("holders %v asked, want one a budget: what they have stays good", holders)
		}
		w.secret("shop/hub", "")
		w.takes(b, 10) // over the connection that is open
		w.secret("shop/hub", "3")
		w.has(at(own("acme/checkout", 100), "hub:2"))
		time.Sleep(time.Second)
		if want := []string{"hub:1@1", "hub:1@2", "hub:1@3"}; !slices.Equal(w.shut(), want) {
			t.Errorf("closed %v, want %v", w.shut(), want)
		}
	})
}

func TestMissingCredentialsAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := at(own("acme/checkout", 100), "hub:1")
		w := start(t)
		defer w.end()
		w.secret("shop/hub", "")
		w.has(b)
		if err := second(w.apply("shop", b, one)); err == nil || !strings.Contains(err.Error(), "there is no secret shop/hub") {
			t.Errorf("error %v, want one that names the Secret", err)
		}
		w.secret("shop/hub", "1")
		time.Sleep(10 * time.Second)
		w.takes(b, 5)
	})
}

// A Secret that is read for long, of one budget, is waited for by no other.
func TestNobodyWaitsForCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := own("acme/checkout", 100)
		w := start(t, b)
		defer w.end()
		w.mu.Lock()
		w.reading = make(chan struct{})
		w.mu.Unlock()
		slow := at(own("acme/slow", 100), "hub:1")
		slow.Name = "slow"
		w.has(b, slow)
		before := time.Now()
		w.takes(b, 5)
		w.set.Observe("shop", "slow")
		_ = second(w.apply("shop", slow, one))
		if took := time.Since(before); took > patience {
			t.Errorf("it took %v", took)
		}
		close(w.reading)
	})
}

func TestAnEscrowInRedisOutlivesTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := own("acme/checkout", 100)
		b.Params.Window = 60 * limiter.Second
		b.Escrow = policy.Store{Type: policy.RedisStore, Address: "redis:1", Secret: "shop/redis"}
		w := start(t, b)
		w.takes(b, 3)
		w.end()
		if want := "cluster-a/acme/checkout"; !strings.HasPrefix(w.escrowed, want) {
			t.Errorf("the escrow is that of %q, want %q: clusters may share a server", w.escrowed, want)
		}
		if !slices.Equal(w.shut(), []string{"redis:1@1"}) {
			t.Errorf("closed %v", w.shut())
		}
	})
}

func TestTheEndOfATermGivesBackAndSealsTheCoordinatorLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := own("acme/checkout", 100)
		b.Params.Window = 60 * limiter.Second
		w := start(t, b)
		w.takes(b, 3)
		w.end()
		if got := w.local.granted(t, b.ID); got != 3 {
			t.Errorf("%d units are granted, want the 3 that were handed on", got)
		}
		if !w.local.sealed {
			t.Error("the local coordinator goes on")
		}
		if err := second(w.apply("shop", b, one)); err == nil {
			t.Error("units are handed on after the term")
		}
	})
}

func TestTheEndOfATermIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := at(own("acme/checkout", 100), "hub:1")
		w := start(t, b)
		w.takes(b, 3)
		w.root("hub:1").hang()
		before := time.Now()
		w.end()
		if took := time.Since(before); took > 2*closeTime {
			t.Errorf("it took %v", took)
		}
	})
}

// TestAConnectionIsClosedAfterItsLastCall changes the Secret while a command is on its
// way; a server that is closed may not be used.
func TestAConnectionIsClosedAfterItsLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := at(own("acme/checkout", 100), "hub:1")
		w := start(t, b)
		defer w.end()
		w.takes(b, 1)
		to := w.root("hub:1")
		to.hang()
		go func() { _ = second(w.apply("shop", b, limiter.Command{Op: limiter.Take, Min: 50, Want: 50})) }()
		time.Sleep(10 * time.Millisecond)
		w.secret("shop/hub", "2")
		if len(w.shut()) != 0 {
			t.Errorf("closed %v under a call", w.shut())
		}
		time.Sleep(5 * time.Second)
		if !slices.Equal(w.shut(), []string{"hub:1@1"}) {
			t.Errorf("closed %v, want the one that is no longer used", w.shut())
		}
	})
}

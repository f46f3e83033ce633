package kubernetes_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/testing/budgettest"
	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// settled is a coordinator whose answers come when nothing is under way any more, so
// that what is set aside ahead is known.
type settled struct{ *kubernetes.Coordinator }

func (s settled) Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	defer s.Settle()
	return s.Coordinator.Apply(ctx, id, p, c)
}

func TestConformance(t *testing.T) {
	budgettest.Run(t, func(t *testing.T) budgettest.Subject { return subject(t, suite.NewClock(suite.Start)) })
}

func subject(t *testing.T, now *suite.Clock) budgettest.Subject {
	kept := newJournal()
	c := kubernetes.New(kubernetes.Options{Journal: kept, Births: kept, Clock: now.Now})
	next := func() budgettest.Coordinator {
		c = kubernetes.New(kubernetes.Options{Journal: kept, Births: kept, Clock: now.Now})
		return settled{c}
	}
	return budgettest.Subject{
		Coordinator: settled{c},
		Block:       4,
		Memory: func(id string) ledger.Memory {
			r, ok := kept.record(id)
			if !ok {
				t.Fatalf("no record of %s", id)
			}
			return ledger.Memory{Term: r.Term, Since: r.Since}
		},
		Advance: now.Advance, Set: now.Set,
		Forget: map[string]func() budgettest.Coordinator{
			"the records are deleted, and the leader crashes": func() budgettest.Coordinator {
				now.Advance(1) // a term is an instant
				kept.wipe()
				return next()
			},
			"a leader that lives on finds no record": func() budgettest.Coordinator {
				now.Advance(1)
				kept.wipe()
				c.Forget()
				return settled{c}
			},
		},
		Forfeit: map[string]func() budgettest.Coordinator{
			"a crash": next,
			"a hand-over": func() budgettest.Coordinator {
				c.Seal(t.Context())
				return next()
			},
		},
		Break: func() { c.Seal(t.Context()) },
		Suspend: func() func() {
			resumed := make(chan struct{})
			c.Forget() // what is set aside is granted without the journal
			kept.trouble(func(ctx context.Context, _ string) error {
				select {
				case <-resumed:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			return func() { close(resumed) }
		},
	}
}

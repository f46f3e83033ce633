package enforce_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// TestTheFailureActionAnswersALook while the store is away.
func TestTheFailureActionAnswersALook(t *testing.T) {
	for action, allowed := range map[policy.Action]bool{policy.Allow: true, policy.Deny: false} {
		e := newEnforcer(t, away{})
		p := policyOf(limitOf("all", 2))
		p.OnStoreUnavailable = action
		apply(t, e, p)
		for _, hits := range []int64{0, 1} {
			if r := rule(t, e, descriptor(hits, "user=ann")); r.Allowed != allowed {
				t.Errorf("%s, %d hits: allowed %v", action, hits, r.Allowed)
			}
		}
	}
}

// TestACallThatIsCancelledKeepsNothing: the second limit never answers.
func TestACallThatIsCancelledKeepsNothing(t *testing.T) {
	asked := make(chan struct{})
	e := newEnforcer(t, stuck{newStore(frozen), asked})
	apply(t, e, policyOf(limitOf("all", 3), limitOf("stuck", 3)))
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-asked
		leave()
	}()
	if _, err := e.DecideDescriptors(ctx, "*", []enforce.Descriptor{descriptor(2, "user=ann")}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if n := left(t, e, "all", ""); n != 3 {
		t.Errorf("%d are left, want all 3", n)
	}
	if c := counted(e, "all"); c.Admitted != 0 {
		t.Errorf("counted %d", c.Admitted)
	}
}

// stuck is a store that never answers for the limit of that name.
type stuck struct {
	twotier.Store
	asked chan struct{}
}

func (s stuck) Apply(ctx context.Context, k store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	if k.Scope.Limit != "stuck" {
		return s.Store.Apply(ctx, k, p, c)
	}
	if c.Op == limiter.Take {
		close(s.asked)
	}
	<-ctx.Done()
	return limiter.Result{}, ctx.Err()
}

// TestADefectIsNotARuling also gives back what other limits granted.
func TestADefectIsNotARuling(t *testing.T) {
	defect := errors.New("defect")
	e := newEnforcer(t, broken{newStore(frozen), defect})
	apply(t, e, policyOf(limitOf("all", 3), limitOf("broken", 3, of("path"))))
	if r, err := e.DecideDescriptors(t.Context(), "*", []enforce.Descriptor{descriptor(2, "path=/")}); !errors.Is(err, defect) || r.Allowed {
		t.Errorf("got %+v, %v", r, err)
	}
	if r := rule(t, e, descriptor(3, "user=ann")); !r.Allowed {
		t.Error("what was taken before the defect is gone")
	}
}

// broken is a store with a defect in the limit of that name.
type broken struct {
	twotier.Store
	defect error
}

func (s broken) Apply(ctx context.Context, k store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	if k.Scope.Limit == "broken" {
		return limiter.Result{}, s.defect
	}
	return s.Store.Apply(ctx, k, p, c)
}

func TestBypassRulesNothing(t *testing.T) {
	e := newEnforcer(t, newStore(frozen), func(c *enforce.Config) { c.Mode = enforce.Bypass })
	apply(t, e, policyOf(limitOf("all", 1)))
	for range 3 {
		if r := rule(t, e, descriptor(1, "user=ann")); !r.Allowed || !r.Known || r.States[0].Limit != nil {
			t.Errorf("got %+v", r)
		}
	}
}

func TestAClosedEnforcerRulesNothing(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	e.Close(t.Context())
	if r, err := e.DecideDescriptors(t.Context(), "*", []enforce.Descriptor{descriptor(1, "user=ann")}); err == nil || r.Allowed {
		t.Errorf("got %+v, %v", r, err)
	}
}

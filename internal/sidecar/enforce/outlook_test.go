package enforce_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// TestPeekLooksAtEachLimit: in the order of the queries, and takes and counts nothing.
func TestPeekLooksAtEachLimit(t *testing.T) {
	s := newStore(frozen)
	e := newEnforcer(t, s)
	apply(t, e, policyOf(limitOf("all", 10), limitOf("by-tenant", 5, byTenant(policy.Skip)), limitOf("watched", 3, inShadow)))
	admit(t, e, 4, "/ x-tenant:ann")
	before := s.Len()
	for range 3 {
		got, err := e.Peek(t.Context(), []enforce.Query{
			{Policy: "checkout", Limit: "by-tenant", Key: "ann", Cost: 2},
			{Policy: "checkout", Limit: "all", Cost: 6},
			{Policy: "checkout", Limit: "watched", Cost: 1},
			{Policy: "checkout", Limit: "by-tenant", Key: "bob", Cost: 6},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct {
			allowed, shadow, never bool
			remaining              int64
		}{{remaining: 1}, {allowed: true, remaining: 6}, {shadow: true}, {never: true, remaining: 5}} {
			o := got[i]
			if o.Allowed != want.allowed || o.Shadow != want.shadow || o.Never != want.never || o.Remaining != want.remaining || o.Unread != nil {
				t.Errorf("query %d: got %+v, want %+v", i, o, want)
			}
		}
	}
	if c := counted(e, "all"); c.Admitted != 4 || c.Refused != 0 {
		t.Errorf("counted %d admitted and %d refused, want 4 and 0", c.Admitted, c.Refused)
	}
	if got := s.Len(); got != before {
		t.Errorf("the store has %d counters, had %d", got, before)
	}
}

// TestPeeksOfInventedKeysMakeNothing, in the sidecar and in the store.
func TestPeeksOfInventedKeysMakeNothing(t *testing.T) {
	s := newStore(frozen)
	e := newEnforcer(t, s)
	apply(t, e, policyOf(limitOf("by-tenant", 5, byTenant(policy.Skip))))
	for i := range 2000 {
		got, err := e.Peek(t.Context(), []enforce.Query{{Policy: "checkout", Limit: "by-tenant", Key: fmt.Sprint("invented ", i), Cost: 1}})
		if err != nil || !got[0].Allowed || got[0].Shared {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	if stats := e.Limits()[0].Stats; stats.ActiveKeys != 0 || stats.Full != twotier.NoBound || s.Len() != 0 {
		t.Errorf("%d keys, %v, %d counters, want none", stats.ActiveKeys, stats.Full, s.Len())
	}
}

func TestAPeekNamesTheQueryThatIsWrong(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("all", 10), limitOf("by-tenant", 5, byTenant(policy.Skip))))
	for name, q := range map[string]enforce.Query{
		"an unknown policy": {Policy: "none", Limit: "all"},
		"an unknown limit":  {Policy: "checkout", Limit: "none"},
		"a key too many":    {Policy: "checkout", Limit: "all", Key: "k"},
		"no key":            {Policy: "checkout", Limit: "by-tenant"},
		"a tenant too many": {Policy: "checkout", Limit: "all", Tenant: "t"},
	} {
		t.Run(name, func(t *testing.T) {
			q.Cost = 1
			_, err := e.Peek(t.Context(), []enforce.Query{{Policy: "checkout", Limit: "all", Cost: 1}, q})
			if of, ok := errors.AsType[*enforce.QueryError](err); !ok || of.At != 1 {
				t.Fatalf("got %v, want an error of the second", err)
			}
			_, want := e.Check(t.Context(), q)
			if want == nil || errors.Unwrap(err).Error() != want.Error() {
				t.Errorf("got %v, want that of a check, %v", err, want)
			}
		})
	}
}

// TestAPeekWithoutTheStoreSaysSo, and what the failure action does.
func TestAPeekWithoutTheStoreSaysSo(t *testing.T) {
	for action, allowed := range map[policy.Action]bool{policy.Allow: true, policy.Deny: false} {
		e := newEnforcer(t, unreachable{})
		p := policyOf(limitOf("all", 10))
		p.OnStoreUnavailable = action
		apply(t, e, p)
		got, err := e.Peek(t.Context(), []enforce.Query{{Policy: "checkout", Limit: "all", Cost: 1}})
		if err != nil || got[0].Unread == nil || got[0].Allowed != allowed || !got[0].Undecided() || got[0].Never {
			t.Errorf("%s: got %+v, %v", action, got, err)
		}
	}
}

func TestAPeekOfABypassedPodAsksNobody(t *testing.T) {
	e := newEnforcer(t, unreachable{}, func(c *enforce.Config) { c.Mode = enforce.Bypass })
	apply(t, e, policyOf(limitOf("all", 10)))
	got, err := e.Peek(t.Context(), []enforce.Query{{Policy: "checkout", Limit: "all", Cost: 1}})
	if err != nil || !got[0].Bypass || !got[0].Allowed || got[0].Remaining != 10 || got[0].Unread != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestAPeekDoesNotWaitForever: one second for all limits together.
func TestAPeekDoesNotWaitForever(t *testing.T) {
	var waited []bool
	e := newEnforcer(t, newStore(frozen), func(c *enforce.Config) {
		c.NewLimiter = func(twotier.Config, twotier.Store) (enforce.Limiter, error) {
			return &engine{
				acquire: func(string, int64) (twotier.Decision, error) { return twotier.Decision{Reason: limiter.Exhausted}, nil },
				peeked: func(ctx context.Context) {
					_, bounded := ctx.Deadline()
					waited = append(waited, bounded)
				},
				closed: make(chan struct{}),
			}, nil
		}
	})
	apply(t, e, policyOf(limitOf("a", 10), limitOf("b", 10)))
	if _, err := e.Peek(t.Context(), []enforce.Query{{Policy: "checkout", Limit: "a", Cost: 1}, {Policy: "checkout", Limit: "b", Cost: 1}}); err != nil {
		t.Fatal(err)
	}
	if len(waited) != 2 || !waited[0] || !waited[1] {
		t.Errorf("the calls are bounded: %v", waited)
	}
}

// TestAKeyOfSeveralPartsIsThatOfRequests: the app's question and a request share a counter.
func TestAKeyOfSeveralPartsIsThatOfRequests(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	long := strings.Repeat("x", 200)
	apply(t, e, policyOf(limitOf("by-both", 5, func(l *policy.Limit) {
		l.Key = &policy.Key{Parts: []policy.KeyPart{{Type: policy.HeaderKey, Header: "x-tenant"}, {Type: policy.HeaderKey, Header: "x-plan"}}, OnMissing: policy.Skip, MaxKeys: 100}
	})))
	admit(t, e, 3, "/ x-tenant:"+long+" x-plan:gold")
	for _, tc := range []struct {
		parts     []string
		remaining int64
	}{{[]string{long, "gold"}, 2}, {[]string{"gold", long}, 5}} {
		got, err := e.Peek(t.Context(), []enforce.Query{{Policy: "checkout", Limit: "by-both", Parts: tc.parts, Cost: 1}})
		if err != nil || got[0].Remaining != tc.remaining {
			t.Errorf("%.10q: got %+v, %v, want %d left", tc.parts, got, err, tc.remaining)
		}
	}
	for _, q := range []enforce.Query{{}, {Key: "gold"}, {Parts: []string{"a", "b", "c"}}, {Key: "a", Parts: []string{"b"}}} {
		q.Policy, q.Limit, q.Cost = "checkout", "by-both", 1
		var key *enforce.KeyError
		if _, err := e.Check(t.Context(), q); !errors.As(err, &key) || key.Parts != 2 {
			t.Errorf("%+v: got %v", q, err)
		}
	}
}

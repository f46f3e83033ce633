package enforce_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// descriptor returns a descriptor of entries such as "user=ann", that costs that much.
func descriptor(hits int64, entries ...string) enforce.Descriptor {
	all := make([]policy.Entry, len(entries))
	for i, e := range entries {
		all[i].Key, all[i].Value, _ = strings.Cut(e, "=")
	}
	return enforce.Descriptor{Request: policy.NewDescriptor(all), Hits: hits}
}

// of makes a limit one of descriptors with that key.
func of(key string) func(*policy.Limit) {
	return func(l *policy.Limit) {
		l.Match = []policy.Match{{Descriptors: []policy.DescriptorMatch{{Key: key}}}}
	}
}

// each gives a limit one counter for each value of that key.
func each(key string, onMissing policy.OnMissing) func(*policy.Limit) {
	return func(l *policy.Limit) {
		l.Key = &policy.Key{Parts: []policy.KeyPart{{Type: policy.DescriptorKey, Name: key}}, OnMissing: onMissing, MaxKeys: 100}
	}
}

func rule(t *testing.T, e *enforce.Enforcer, ds ...enforce.Descriptor) enforce.Ruling {
	t.Helper()
	r, err := e.DecideDescriptors(t.Context(), "*", ds)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// left returns what the limit has left, by a look at it.
func left(t *testing.T, e *enforce.Enforcer, limit, key string) int64 {
	t.Helper()
	d, err := e.Check(t.Context(), enforce.Query{Policy: "checkout", Limit: limit, Key: key, Cost: 1, Peek: true})
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// TestDescriptorsAreOneDecision: what one descriptor is refused costs the others
// nothing, and each answer says how it stands.
func TestDescriptorsAreOneDecision(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	e.SetHolders("shop", "checkout", 1)
	apply(t, e, policyOf(limitOf("users", 5, of("user"), each("user", policy.Skip)), limitOf("paths", 3, of("path"))))
	call := []enforce.Descriptor{descriptor(1, "user=ann"), descriptor(2, "path=/"), descriptor(1, "user=bob")}
	if r := rule(t, e, call...); !r.Allowed || r.States[1].Decision.Remaining != 1 {
		t.Fatalf("the first call: %+v", r)
	}
	r := rule(t, e, call...)
	if r.Allowed {
		t.Fatal("4 of 3 are admitted")
	}
	for i, want := range []struct {
		limit   string
		refused bool
		left    int64
	}{{"users", false, 4}, {"paths", true, 0}, {"users", false, 4}} {
		s := r.States[i]
		if s.Limit.Name != want.limit || (s.Refusal != nil) != want.refused || s.Decision.Remaining != want.left {
			t.Errorf("descriptor %d: limit %s, refusal %v, %d left; want %+v", i, s.Limit.Name, s.Refusal, s.Decision.Remaining, want)
		}
	}
	for _, user := range []string{"ann", "bob"} {
		if n := left(t, e, "users", user); n != 4 {
			t.Errorf("%s has %d left after one admitted call, want 4", user, n)
		}
	}
	if c := counted(e, "users"); c.Admitted != 2 || c.Refused != 0 {
		t.Errorf("limit users counted %d admitted and %d refused, want 2 and 0", c.Admitted, c.Refused)
	}
	if c := counted(e, "paths"); c.Admitted != 2 || c.Refused != 2 {
		t.Errorf("limit paths counted %d admitted and %d refused, want 2 and 2", c.Admitted, c.Refused)
	}
}

// TestACounterIsChargedOnceACall: descriptors that fall under one counter are the same
// request.
func TestACounterIsChargedOnceACall(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("all", 10), limitOf("users", 10, each("user", policy.Skip))))
	r := rule(t, e, descriptor(1, "user=ann"), descriptor(4, "user=ann", "path=/"), descriptor(2, "user=bob"), descriptor(0, "path=/"))
	if !r.Allowed {
		t.Fatal("refused")
	}
	for limit, want := range map[string]int64{"all": 4, "users": 4 + 2} {
		if c := counted(e, limit); c.Admitted != want {
			t.Errorf("limit %s counted %d, want %d", limit, c.Admitted, want)
		}
	}
	if s := r.States[3]; s.Limit.Name != "all" || s.Decision.Remaining != 6 {
		t.Errorf("the last descriptor: %d left of %s, want 6 of all", s.Decision.Remaining, s.Limit.Name)
	}
}

func TestDomains(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	other := policyOf(limitOf("other", 10))
	other.Namespace, other.Name = "edge", "gateway"
	apply(t, e, other, policyOf(limitOf("own", 10)))
	for domain, want := range map[string]struct {
		known      bool
		own, other int64
	}{
		"":              {true, 1, 1},
		"*":             {true, 1, 1},
		"checkout":      {true, 1, 0},
		"shop/checkout": {true, 1, 0},
		"edge/gateway":  {true, 0, 1},
		"gateway":       {}, // of another namespace
		"shop/gateway":  {},
		"shop/":         {},
		"/":             {},
		"envoy":         {},
	} {
		own, others := counted(e, "own").Admitted, counted(e, "other").Admitted
		r, err := e.DecideDescriptors(t.Context(), domain, []enforce.Descriptor{descriptor(1, "user=ann")})
		if err != nil || !r.Allowed || r.Known != want.known {
			t.Errorf("domain %q: known %v, allowed %v, %v", domain, r.Known, r.Allowed, err)
		}
		own, others = counted(e, "own").Admitted-own, counted(e, "other").Admitted-others
		if own != want.own || others != want.other {
			t.Errorf("domain %q: %d and %d counted, want %+v", domain, own, others, want)
		}
	}
}

// TestALookTakesNothing asks without hits until one more would be refused.
func TestALookTakesNothing(t *testing.T) {
	for _, mode := range []policy.ConsistencyMode{policy.Leased, policy.CachedDeny, policy.Strict} {
		t.Run(string(mode), func(t *testing.T) {
			e := newEnforcer(t, newStore(frozen))
			p := policyOf(limitOf("all", 2))
			if mode != policy.Leased {
				p.Consistency = policy.Consistency{Mode: mode}
			}
			apply(t, e, p)
			for i := range 5 {
				if r := rule(t, e, descriptor(0, "user=ann")); !r.Allowed || r.States[0].Decision.Remaining != 2 {
					t.Fatalf("look %d: %+v", i, r)
				}
			}
			if r := rule(t, e, descriptor(2, "user=ann")); !r.Allowed {
				t.Error("the looks took something")
			}
			if r := rule(t, e, descriptor(0, "user=ann")); r.Allowed || r.States[0].Refusal.Cause != enforce.QuotaExceeded {
				t.Errorf("a look at a limit that is used up: %+v", r)
			}
			if c := counted(e, "all"); c.Admitted != 2 {
				t.Errorf("counted %d, want 2", c.Admitted)
			}
		})
	}
}

func TestDescriptorsInShadow(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("watched", 1, inShadow), limitOf("enforced", 3)))
	for i := range 5 {
		r := rule(t, e, descriptor(1, "user=ann"))
		if s := r.States[0]; r.Allowed != (i < 3) || s.Limit.Name != "enforced" {
			t.Errorf("call %d: allowed %v by %s", i, r.Allowed, s.Limit.Name)
		}
	}
	if c := counted(e, "watched"); c.Admitted != 1 || c.Refused != 2 {
		t.Errorf("limit watched counted %d admitted and %d refused, want 1 and 2", c.Admitted, c.Refused)
	}
}

func TestADescriptorWithoutTheKey(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("keyed", 3, each("user", policy.Reject))))
	r := rule(t, e, descriptor(1, "user=ann"), descriptor(1, "path=/"), descriptor(1, "path=/b"))
	if r.Allowed || r.States[0].Refusal != nil {
		t.Fatalf("got %+v", r)
	}
	for _, s := range r.States[1:] {
		if s.Refusal.Cause != enforce.KeyMissing || s.Refusal.Missing.Name != "user" {
			t.Errorf("got %+v", s.Refusal)
		}
	}
	if n := e.Limits()[0].Counts.Requests(count.KeyMissing); n != 1 {
		t.Errorf("%d requests lacked the key, want this one", n)
	}
	if n := left(t, e, "keyed", "ann"); n != 3 {
		t.Errorf("ann has %d left, want all 3", n)
	}
}

func TestBinds(t *testing.T) {
	admitted := func(left int64) enforce.QuotaState {
		return enforce.QuotaState{Limit: new(policy.Limit), Decision: twotier.Decision{Remaining: left}}
	}
	refused := func(cause enforce.Cause, wait time.Duration) enforce.QuotaState {
		return enforce.QuotaState{
			Limit: new(policy.Limit), Decision: twotier.Decision{RetryAfter: wait}, Refusal: &enforce.Refusal{Cause: cause},
		}
	}
	order := []enforce.QuotaState{
		{},
		admitted(7),
		admitted(0),
		refused(enforce.QuotaExceeded, time.Second),
		refused(enforce.StoreUnavailable, time.Minute),
		refused(enforce.CostTooLarge, 0),
	}
	for i, less := range order {
		if less.Binds(less) {
			t.Errorf("%d binds more than itself", i)
		}
		for j, more := range order[i+1:] {
			if !more.Binds(less) || less.Binds(more) {
				t.Errorf("%d does not bind more than %d", i+1+j, i)
			}
		}
	}
}

// TestHeldDecisionsWaitForNothing: a call is decided by what the process holds. Otherwise nothing
// is taken or counted.
func TestHeldDecisionsWaitForNothing(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	e.SetHolders("shop", "checkout", 1)
	p := policyOf(limitOf("users", 10, of("user"), each("user", policy.Skip)), limitOf("paths", 10, of("path")))
	p.Consistency = policy.Consistency{Mode: policy.Leased, Size: policy.Fixed, Batch: 5, Expiry: policy.Coupled}
	apply(t, e, p)
	ann, path := descriptor(1, "user=ann"), descriptor(1, "path=/")
	wantNone := func(why string, ds ...enforce.Descriptor) {
		t.Helper()
		if _, err := e.DecideHeld("*", ds); !errors.Is(err, twotier.ErrNotHeld) {
			t.Errorf("%s: %v, want ErrNotHeld", why, err)
		}
	}
	wantNone("nothing is held", ann)
	rule(t, e, ann) // which leases more
	r, err := e.DecideHeld("*", []enforce.Descriptor{ann})
	if err != nil || !r.Allowed || r.States[0].Decision.Remaining != 8 {
		t.Errorf("of what is held: %+v, %v", r, err)
	}
	wantNone("one of two limits holds nothing", ann, path)
	wantNone("to look takes the store", descriptor(0, "user=ann"))
	if n := left(t, e, "users", "ann"); n != 8 {
		t.Errorf("ann has %d left, want 8", n)
	}
	if c := counted(e, "users"); c.Admitted != 2 {
		t.Errorf("limit users counted %d admitted, want 2", c.Admitted)
	}
}

// TestALimitInShadowIsAskedToo: where it holds nothing, the store decides the call.
func TestALimitInShadowIsAskedToo(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	p := policyOf(limitOf("users", 10, of("user")))
	p.Mode = policy.Shadow
	p.Consistency = policy.Consistency{Mode: policy.Leased, Size: policy.Fixed, Batch: 5, Expiry: policy.Coupled}
	apply(t, e, p)
	if _, err := e.DecideHeld("*", []enforce.Descriptor{descriptor(1, "user=ann")}); !errors.Is(err, twotier.ErrNotHeld) {
		t.Errorf("got %v, want ErrNotHeld", err)
	}
}

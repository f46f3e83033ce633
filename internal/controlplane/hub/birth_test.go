package hub

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/federation/birth"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

func TestPartInABudget(t *testing.T) {
	redis := policy.Store{Type: policy.RedisStore, Address: "redis:6379", Sentinel: "main", Database: "2"}
	for name, tc := range map[string]struct {
		hub  *policy.Hub
		of   policy.Store
		want Part
	}{
		"a store keeps it": {nil, redis, Part{Window: day, Ledger: "Redis|redis:6379|main|2", Members: []string{"a", "b"}}},
		"a hub keeps it":   {&policy.Hub{Endpoint: "hub:15040"}, redis, Part{Window: day}},
		"this hub does":    {nil, policy.Store{Type: policy.ControllerStore}, Part{Window: day}},
	} {
		t.Run(name, func(t *testing.T) {
			b := policy.FederatedBudget{Hub: tc.hub, Coordinator: tc.of, Params: params(100, "b", "a")}
			b.Params.Window = day
			if diff := cmp.Diff(tc.want, PartOf(&b)); diff != "" {
				t.Errorf("part (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheLongestWindowOfABudget is the one that it is remembered for.
func TestTheLongestWindowOfABudget(t *testing.T) {
	const start = limiter.Instant(1_790_000_000_000_000)
	hour := limiter.Micros(time.Hour.Microseconds())
	for name, tc := range map[string]struct {
		granted map[string]Part
		kept    map[string]limiter.Micros
	}{
		"granted elsewhere": {granted: map[string]Part{"a": {Window: day}}},
		"kept here":         {kept: map[string]limiter.Micros{"a": day}},
	} {
		t.Run(name, func(t *testing.T) {
			k := known{Budgets: map[string]entry{}}
			k.attend(start, map[string]Part{"a": {Window: limiter.Second}}, nil)
			k.attend(start, tc.granted, tc.kept) // it is longer now
			k.attend(start.Add(23*hour), nil, nil)
			if want := (entry{Window: day, Seen: start}); !k.has("a", day, start.Add(23*hour)) || k.Budgets["a"].Window != want.Window || k.Budgets["a"].Seen != want.Seen {
				t.Errorf("remembered are %+v, want %+v", k.Budgets, want)
			}
			k.attend(start.Add(48*hour), nil, nil)
			if k.has("a", day, start.Add(48*hour)) {
				t.Errorf("remembered are %+v for ever", k.Budgets)
			}
		})
	}
}

// TestABudgetOfAStoreBegins with a birth unless it may be an old one.
func TestABudgetOfAStoreBegins(t *testing.T) {
	const start = limiter.Instant(1_790_000_000_000_000)
	part := Part{Window: day, Ledger: "redis", Members: []string{"a"}}
	for name, tc := range map[string]struct {
		began limiter.Instant
		want  birth.Birth
	}{
		"which is new":       {0, birth.New("redis", []string{"a"})},
		"which may be older": {start, birth.Birth{}},
	} {
		t.Run(name, func(t *testing.T) {
			k := known{Began: tc.began, Budgets: map[string]entry{}}
			k.attend(start, map[string]Part{"a": part}, nil)
			if got := k.Budgets["a"].Birth; !got.Equal(tc.want) {
				t.Errorf("its birth is %+v, want %+v", got, tc.want)
			}
		})
	}
}

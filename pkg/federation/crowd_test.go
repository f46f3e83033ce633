package federation

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// TestTenantsOfAWindowAreReported checks the tenants that a region reports in window 10.
func TestTenantsOfAWindowAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		index int64
		list  tenants
		want  []ledger.Tenant
	}{
		"in the window": {
			10,
			tenants{{weight: 1, asked: 7, before: 3}, {weight: 2, asked: 1, before: absent}},
			[]ledger.Tenant{{Weight: 1, Wants: 7}, {Weight: 2, Wants: limiter.MaxLimit}},
		},
		"more in the window before": {
			10,
			tenants{{weight: 1, asked: 7, before: absent}, {weight: 2, asked: absent, before: 5}},
			[]ledger.Tenant{{Weight: 2, Wants: 5}},
		},
		"fewer in the window before": {
			10,
			tenants{{weight: 2, asked: 7, before: absent}, {weight: 1, asked: absent, before: 5}},
			[]ledger.Tenant{{Weight: 2, Wants: limiter.MaxLimit}},
		},
		"a declared one in the window before": {
			10,
			tenants{{weight: 2, asked: 7, before: absent}, {weight: 1, asked: absent, before: 5, declared: true}},
			[]ledger.Tenant{{Weight: 2, Wants: limiter.MaxLimit}, {Weight: 1, Wants: limiter.MaxLimit}},
		},
		"nobody asked yet":          {9, tenants{{weight: 1, asked: 7, before: 30}, {weight: 1, asked: absent, before: 2}}, []ledger.Tenant{{Weight: 1, Wants: 7}}},
		"all are idle for a window": {8, tenants{{weight: 1, asked: 7, before: absent, declared: true}}, nil},
	} {
		s := split{{}: {index: c.index, tenants: c.list}}
		if got := s.tenants(10); !slices.Equal(got.list, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got.list, c.want)
		}
	}
}

// TestTheReportOfARegionIsValid has more and larger tenants than can be said.
func TestTheReportOfARegionIsValid(t *testing.T) {
	s := split{}
	for i := range 5 {
		d := &division{index: 10}
		for j := range 1000 {
			d.tenants = append(d.tenants, tenant{weight: limiter.MaxWeight, asked: limiter.MaxLimit - int64(i*1000+j), before: 1})
		}
		s[store.Key{Hash: fmt.Sprint(i)}] = d
	}
	for _, level := range []int64{0, limiter.MaxLimit * ledger.Scale} {
		c := ledger.Command{Op: ledger.Lease, Member: "m", Holder: "h", Seq: 1, Min: 1, Want: 1, Memory: ledger.Memory{Term: 1}}
		all := s.tenants(10)
		all.say(&c, level, 0, 100, 1)
		if err := c.Validate(); err != nil || c.Weight < ledger.MaxClaim-limiter.MaxWeight || c.Tenants.Unmet == 0 {
			t.Errorf("%v: weight %d, %+v", err, c.Weight, c.Tenants)
		}
	}
}

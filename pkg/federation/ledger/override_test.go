package ledger_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// overridden returns the parameters of a budget with a key whose values have these limits.
func overridden(overrides ...ledger.Override) ledger.Params {
	return ledger.Params{
		Limit: 100, Window: limiter.Second, Keys: 10, Overrides: overrides,
		Members: []ledger.Member{{Name: "a", Weight: 1, Nominal: 20, Kept: 20}, {Name: "b", Weight: 1, Nominal: 10, Kept: 10}},
	}
}

func TestALimitIsOfItsValue(t *testing.T) {
	p := overridden(ledger.Override{Hash: "b", Limit: 500}, ledger.Override{Hash: "d", Limit: 5})
	for hash, want := range map[string]int64{"a": 100, "b": 500, "c": 100, "d": 5, "e": 100} {
		if got := p.LimitOf(hash); got != want {
			t.Errorf("the limit of %s is %d, want %d", hash, got, want)
		}
	}
	if none := overridden(); none.LimitOf("b") != 100 {
		t.Error("a value without an override has not the limit of all")
	}
}

func TestOverridesThatNobodyMayHave(t *testing.T) {
	many := make([]ledger.Override, ledger.MaxOverrides+1)
	for i := range many {
		many[i] = ledger.Override{Hash: fmt.Sprintf("%04d", i), Limit: 1}
	}
	for name, tc := range map[string]struct {
		change func(*ledger.Params)
		field  string // of the error; empty: none
	}{
		"as many as there may be":     {func(p *ledger.Params) { p.Overrides = many[1:] }, ""},
		"too many":                    {func(p *ledger.Params) { p.Overrides = many }, "overrides"},
		"without a key":               {func(p *ledger.Params) { p.Keys = 0 }, "overrides"},
		"no hash":                     {func(p *ledger.Params) { p.Overrides[0].Hash = "" }, "overrides[0].hash"},
		"out of order":                {func(p *ledger.Params) { p.Overrides[0].Hash = "y" }, "overrides[1].hash"},
		"a value twice":               {func(p *ledger.Params) { p.Overrides[0].Hash = "x" }, "overrides[1].hash"},
		"no limit":                    {func(p *ledger.Params) { p.Overrides[0].Limit = 0 }, "overrides[0].limit"},
		"a limit that is too large":   {func(p *ledger.Params) { p.Overrides[1].Limit = limiter.MaxLimit + 1 }, "overrides[1].limit"},
		"a block below 0":             {func(p *ledger.Params) { p.Overrides[1].Block = -1 }, "overrides[1].block"},
		"a block that is too large":   {func(p *ledger.Params) { p.Overrides[1].Block = limiter.MaxLimit + 1 }, "overrides[1].block"},
		"slices that are as large":    {func(p *ledger.Params) { p.Slices, p.Overrides[0].Limit = true, 30 }, ""},
		"slices that are larger":      {func(p *ledger.Params) { p.Slices, p.Overrides[0].Limit = true, 29 }, "overrides[0].limit"},
		"nominal shares that are not": {func(p *ledger.Params) { p.Overrides[0].Limit = 29 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := overridden(ledger.Override{Hash: "w", Limit: 500, Block: 50}, ledger.Override{Hash: "x", Limit: 50, Block: 1})
			tc.change(&p)
			invalid, field := (*ledger.InvalidError)(nil), ""
			if err := p.Validate(); errors.As(err, &invalid) {
				field = invalid.Field
			}
			if field != tc.field {
				t.Errorf("the error is of %q, want %q", field, tc.field)
			}
		})
	}
}

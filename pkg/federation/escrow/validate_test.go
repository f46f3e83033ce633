package escrow_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestValidate(t *testing.T) {
	fill := func(change func(*escrow.Command)) escrow.Command {
		c := escrow.Command{
			Op: escrow.Fill, Holder: "h", At: begin, ExpiresIn: -1,
			Grant: ledger.Grant{Reason: ledger.Granted, Seq: 1, Epoch: epoch(5, 1), Granted: 2, Slice: 3},
		}
		change(&c)
		return c
	}
	for name, test := range map[string]struct {
		command escrow.Command
		field   string // that is wrong
	}{
		"a peek":                   {escrow.Command{Op: escrow.Peek}, ""},
		"no operation":             {escrow.Command{}, "Op"},
		"an unknown operation":     {escrow.Command{Op: escrow.Peek + 1}, "Op"},
		"a take":                   {escrow.Command{Op: escrow.Take, Min: 2, Want: 2}, ""},
		"a take of nothing":        {escrow.Command{Op: escrow.Take}, "Want"},
		"a take of too much":       {escrow.Command{Op: escrow.Take, Min: 1, Want: limiter.MaxLimit + 1}, "Want"},
		"a take of at least none":  {escrow.Command{Op: escrow.Take, Want: 2}, "Min"},
		"a take of at least more":  {escrow.Command{Op: escrow.Take, Min: 3, Want: 2}, "Min"},
		"a return of nothing":      {escrow.Command{Op: escrow.Return}, "Want"},
		"a return of no window":    {escrow.Command{Op: escrow.Return, Want: 1, Epoch: epoch(-1, 0)}, "Epoch.Index"},
		"nobody asks":              {escrow.Command{Op: escrow.Ask}, "Holder"},
		"a name that is too long":  {escrow.Command{Op: escrow.Ask, Holder: strings.Repeat("h", 257)}, "Holder"},
		"nobody releases":          {escrow.Command{Op: escrow.Release}, "Holder"},
		"a release of more":        {escrow.Command{Op: escrow.Release, Holder: "h", Keep: -1}, "Keep"},
		"an answer":                {fill(func(*escrow.Command) {}), ""},
		"an answer without epoch":  {fill(func(c *escrow.Command) { c.Grant = ledger.Grant{Reason: ledger.Behind} }), ""},
		"an answer to nobody":      {fill(func(c *escrow.Command) { c.Holder = "" }), "Holder"},
		"an answer of no reason":   {fill(func(c *escrow.Command) { c.Grant.Reason = 0 }), "Grant.Reason"},
		"a number below 0":         {fill(func(c *escrow.Command) { c.Grant.Seq = -1 }), "Grant.Seq"},
		"a window below 0":         {fill(func(c *escrow.Command) { c.Grant.Epoch.Index = -1 }), "Grant.Epoch.Index"},
		"a term below 0":           {fill(func(c *escrow.Command) { c.Grant.Epoch.Term = -1 }), "Grant.Epoch.Term"},
		"a grant of too much":      {fill(func(c *escrow.Command) { c.Grant.Granted = limiter.MaxLimit + 1 }), "Grant.Granted"},
		"a slice below 0":          {fill(func(c *escrow.Command) { c.Grant.Slice = -1 }), "Grant.Slice"},
		"an answer at no instant":  {fill(func(c *escrow.Command) { c.At = 0 }), "At"},
		"a life that is too long":  {fill(func(c *escrow.Command) { c.ExpiresIn = limiter.MaxWindow + 1 }), "ExpiresIn"},
		"an opening of no window":  {escrow.Command{Op: escrow.Open, At: begin}, "Epoch.Index"},
		"an opening with less":     {escrow.Command{Op: escrow.Open, At: begin, Epoch: epoch(5, 0), Slice: -1}, "Slice"},
		"an opening ahead of time": {escrow.Command{Op: escrow.Open, At: begin, Epoch: epoch(5, 0), Age: -1}, "Age"},
		"an opening at no instant": {escrow.Command{Op: escrow.Open, Epoch: epoch(5, 0)}, "At"},
	} {
		err := test.command.Validate()
		invalid := (*escrow.InvalidError)(nil)
		switch {
		case test.field == "" && err == nil:
		case !errors.As(err, &invalid) || invalid.Field != test.field || !strings.HasPrefix(err.Error(), test.field+" "):
			t.Errorf("%s: the error is %v, want one that names %q", name, err, test.field)
		}
	}
}

func TestStepKnowsItsOperations(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an unknown operation was applied")
		}
	}()
	escrow.State{}.Step(begin, escrow.Command{})
}

package resolve_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
)

// rules returns the ids that rules permit.
func rules(t *testing.T, all ...string) resolve.IDs {
	t.Helper()
	ids, err := resolve.ParseIDs(all)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestIDsOfANamespace(t *testing.T) {
	tests := map[string]struct {
		rules     []string
		namespace string
		may, not  []string
	}{
		"by default those that begin with its name": {
			namespace: "shop", may: []string{"shop/a", "shop/a/b"}, not: []string{"shop", "shops/a", "bank/a", "bank/shop/a", "a"},
		},
		"a rule is instead of the default": {
			rules: []string{"shop=acme/*"}, namespace: "shop", may: []string{"acme/a", "acme/a/b"}, not: []string{"shop/a", "acme", "acme-b/a"},
		},
		"a rule for another namespace leaves the default": {
			rules: []string{"shop=acme/*"}, namespace: "bank", may: []string{"bank/a"}, not: []string{"acme/a"},
		},
		"one of several rules": {
			rules: []string{"shop=acme/*", "shop=world"}, namespace: "shop", may: []string{"acme/a", "world"}, not: []string{"world/a", "wor"},
		},
		"every id":                      {rules: []string{"shop=*"}, namespace: "shop", may: []string{"a", "bank/a"}},
		"every id, for every namespace": {rules: []string{"*=*"}, namespace: "shop", may: []string{"a", "bank/a"}},
		"none":                          {rules: []string{"shop="}, namespace: "shop", not: []string{"shop/a", "a"}},
		"none but for those named": {
			rules: []string{"*=", "bank=bank/*"}, namespace: "shop", not: []string{"shop/a", "bank/a"},
		},
		"a rule goes before that for every namespace": {
			rules: []string{"*=", "shop=acme/*"}, namespace: "shop", may: []string{"acme/a"}, not: []string{"shop/a"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ids := rules(t, tc.rules...)
			for _, id := range tc.may {
				if err := ids.Permit(tc.namespace, id); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			}
			for _, id := range tc.not {
				if err := ids.Permit(tc.namespace, id); !errors.As(err, new(*resolve.IDError)) {
					t.Errorf("%s is permitted (%v)", id, err)
				}
			}
		})
	}
}

func TestADeniedIDHasACure(t *testing.T) {
	const allow = "let an administrator allow it by --federation-ids of the controller (federation.ids of the chart)"
	for want, of := range map[string][]string{
		"namespace shop may not have the id a, but shop/*: choose such an id, or " + allow:                   nil,
		"namespace shop may not have the id a, nor any other: " + allow:                                      {"shop="},
		"namespace shop may not have the id a, but b, c, d, e, f and 2 more: choose such an id, or " + allow: {"shop=b", "shop=c", "shop=d", "shop=e", "shop=f", "shop=g", "shop=h"},
	} {
		if err := rules(t, of...).Permit("shop", "a"); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestRulesOfIDsThatCannotBe(t *testing.T) {
	for rule, want := range map[string]string{
		"shop":                             "write NAMESPACE=PATTERN",
		"=acme/*":                          "write NAMESPACE=PATTERN",
		"Shop=acme/*":                      "write NAMESPACE=PATTERN",
		"shop/a=acme/*":                    "write NAMESPACE=PATTERN",
		"shop=acme*":                       "write an id, the beginning of ids",
		"shop=*/a":                         "write an id, the beginning of ids",
		"shop=acme/":                       "write an id, the beginning of ids",
		"shop=/*":                          "write an id, the beginning of ids",
		"shop=Acme":                        "write an id, the beginning of ids",
		"shop=" + strings.Repeat("a", 129): "write an id, the beginning of ids",
	} {
		if _, err := resolve.ParseIDs([]string{"bank=a", rule}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), rule) {
			t.Errorf("%s: error %v, want one that says %q", rule, err, want)
		}
	}
	if _, err := resolve.ParseIDs([]string{"shop=", "shop=acme/*"}); err == nil || !strings.Contains(err.Error(), `"shop=": shop has another rule`) {
		t.Errorf("none and some: error %v", err)
	}
}

// TestABudgetTakesNoIDThatItMayNotHave: however old it is.
func TestABudgetTakesNoIDThatItMayNotHave(t *testing.T) {
	older, own := shared("bank", "theft", "shop/world", monday), shared("shop", "world", "shop/world", tuesday)
	budgets := resolve.NewBudgets([]v1alpha1.FederatedBudget{*older, *own}, "c", resolve.IDs{})
	for _, b := range budgets.All() {
		switch b.Object.Namespace {
		case "bank":
			if !errors.As(b.Err, new(*resolve.IDError)) {
				t.Errorf("the older one, which may not have the id: %v", b.Err)
			}
		default:
			if b.Err != nil {
				t.Errorf("the one that may have the id: %v", b.Err)
			}
		}
	}
	if counting := budgets.Counting(); len(counting) != 1 || counting[0].Namespace != "shop" {
		t.Errorf("counting are %+v", counting)
	}
	if _, err := budgets.In("bank")("theft"); err == nil || !strings.Contains(err.Error(), "may not have the id shop/world") {
		t.Errorf("a policy draws from it: %v", err)
	}
}

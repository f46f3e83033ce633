package account

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/limiter"
)

func TestAnOutlookIsWhatAnAccountSays(t *testing.T) {
	p := limiter.Params{Rates: []limiter.Rate{{Limit: 20, Window: limiter.Second}}}
	rules := NewRules(Config{Params: p, Leases: true, Batch: 5})
	const now = 1000
	front := func(credits int64) func(*State) {
		return func(a *State) { a.Front = Grant{Credits: credits, Deadline: now + 500} }
	}
	for name, tc := range map[string]struct {
		account func(*State)
		cost    int64
		want    Outlook
	}{
		"nothing is known":           {func(*State) {}, 3, Outlook{Least: 3}},
		"held":                       {front(4), 3, Outlook{Outcome: Admitted, Held: 4, Least: 3}},
		"a part is held":             {front(4), 6, Outlook{Held: 4, Least: 2}},
		"what is dead is not held":   {func(a *State) { a.Front = Grant{Credits: 4, Deadline: now} }, 3, Outlook{Least: 3}},
		"a debt is paid first":       {func(a *State) { a.Debt = 7 }, 3, Outlook{Debt: 7, Least: 10}},
		"as far as that is granted":  {func(a *State) { a.Debt = 19 }, 3, Outlook{Debt: 19, Least: 20}},
		"never":                      {front(4), 21, Outlook{Outcome: Refused, Reason: limiter.TooLarge, Held: 4, Least: 21}},
		"refused":                    {func(a *State) { a.Refusal = Refusal{Need: 2, Until: now + 250, Reason: limiter.Exhausted} }, 3, Outlook{Outcome: Refused, Reason: limiter.Exhausted, Wait: 250, Least: 3}},
		"refused no more":            {func(a *State) { a.Refusal = Refusal{Need: 2, Until: now, Reason: limiter.Exhausted} }, 3, Outlook{Least: 3}},
		"a smaller cost is not":      {func(a *State) { a.Refusal = Refusal{Need: 4, Until: now + 250, Reason: limiter.Exhausted} }, 3, Outlook{Least: 3}},
		"refused for good":           {func(a *State) { a.Refusal = Refusal{Need: 2, Until: now + 250, Reason: limiter.TooLarge, Final: true} }, 3, Outlook{Outcome: Refused, Reason: limiter.TooLarge, Least: 3}},
		"held by time, in two parts": {func(a *State) { front(2)(a); a.Front.ByTime = true; a.Back = Grant{Credits: 3, Deadline: now + 900} }, 4, Outlook{Held: 5, Least: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			a := rules.Open()
			tc.account(&a)
			if diff := cmp.Diff(tc.want, rules.Foresee(a, p, now, tc.cost)); diff != "" {
				t.Errorf("the outlook differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheStoreAndTheAccountTogether(t *testing.T) {
	left := limiter.Result{Granted: 3, Remaining: 12, RetryAfter: 7, ResetAfter: 90, Delay: 5}
	for name, tc := range map[string]struct {
		now, earlier Outlook
		said, want   limiter.Result
	}{
		"by the store": {Outlook{Least: 3}, Outlook{Least: 3}, left, left},
		"held": {
			Outlook{Outcome: Admitted, Held: 4, Least: 3},
			Outlook{Outcome: Admitted, Held: 4, Least: 3},
			limiter.Result{Reason: limiter.Exhausted, RetryAfter: 7, Delay: 5},
			limiter.Result{Granted: 3, Remaining: 4},
		},
		"both":                        {Outlook{Held: 4, Least: 3}, Outlook{Held: 4, Least: 3}, limiter.Result{Granted: 3, Remaining: 12}, limiter.Result{Granted: 3, Remaining: 16}},
		"a lease that came meanwhile": {Outlook{Held: 9, Least: 3}, Outlook{Held: 1, Least: 3}, limiter.Result{Granted: 3, Remaining: 12}, limiter.Result{Granted: 3, Remaining: 13}},
		"more came than was left":     {Outlook{Held: 9, Least: 3}, Outlook{Least: 3}, limiter.Result{Granted: 3, Remaining: 2}, limiter.Result{Granted: 3, Remaining: 9}},
		"spent meanwhile":             {Outlook{Held: 1, Least: 3}, Outlook{Held: 9, Least: 3}, limiter.Result{Granted: 3, Remaining: 2}, limiter.Result{Granted: 3, Remaining: 3}},
		"owed":                        {Outlook{Debt: 5, Least: 8}, Outlook{Debt: 5, Least: 8}, limiter.Result{Granted: 8, Remaining: 12}, limiter.Result{Granted: 8, Remaining: 7}},
		"owed more than there is":     {Outlook{Debt: 15, Least: 18}, Outlook{Debt: 15, Least: 18}, limiter.Result{Remaining: 12}, limiter.Result{}},
		"a debt that the tenant's part never pays at once": {
			Outlook{Debt: 5, Least: 8},
			Outlook{Debt: 5, Least: 8},
			limiter.Result{Reason: limiter.TooLarge, ResetAfter: 90},
			limiter.Result{Reason: limiter.Exhausted, RetryAfter: 90, ResetAfter: 90},
		},
		"nor does an empty bucket": {
			Outlook{Debt: 5, Least: 8},
			Outlook{Debt: 5, Least: 8},
			limiter.Result{Reason: limiter.TooLarge},
			limiter.Result{Reason: limiter.Exhausted, RetryAfter: limiter.Second},
		},
		"refused here until later": {
			Outlook{Outcome: Refused, Reason: limiter.Exhausted, Wait: 9001, Least: 3},
			Outlook{Least: 3},
			left,
			limiter.Result{Reason: limiter.Exhausted, Remaining: 12, RetryAfter: 10, ResetAfter: 90},
		},
		"refused there until later": {
			Outlook{Outcome: Refused, Reason: limiter.Exhausted, Wait: 1, Least: 3},
			Outlook{Least: 3},
			left,
			limiter.Result{Reason: limiter.Exhausted, Remaining: 12, RetryAfter: 7, ResetAfter: 90},
		},
		"refused for good": {
			Outlook{Outcome: Refused, Reason: limiter.TooLarge, Least: 3},
			Outlook{Least: 3},
			left,
			limiter.Result{Reason: limiter.TooLarge, Remaining: 12, ResetAfter: 90},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.now.With(tc.earlier, tc.said)); diff != "" {
				t.Errorf("it comes to something else (-want +got):\n%s", diff)
			}
		})
	}
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
)

// policyView is the policy as the API server shows it.
type policyView struct {
	id        string // of the object and its generation; "" without a policy
	limit     int64  // of its first rate
	window    time.Duration
	rates     string    // all of them, such as 500 requests per 20s
	unbounded string    // why more than limit may rightly be admitted in a window; "": it may not
	shared    bool      // something other than the first rate may refuse as well
	reset     time.Time // when a counter was set back last, to the second; zero for never
	moving    string    // what is going on while its counters move to another store; "" when they do not
	perTrip   string    // requests decided per round trip to the store, as the status has it
	table     string    // what `kubectl get ratelimitpolicies` prints, "" without any policy
}

func (v *policyView) gone() bool { return v.id == "" }

// title says what is limited.
func (v *policyView) title() string {
	switch {
	case !v.gone():
		return fmt.Sprintf("%s, shared by all pods of shop/checkout", v.rates)
	case v.table == "":
		return "policy shop/checkout is gone; nothing is limited"
	default:
		return "policy shop/checkout is gone; other policies are there"
	}
}

// readPolicy asks as kubectl does.
func (d *policyShow) readPolicy(ctx context.Context) (policyView, error) {
	table, err := d.table(ctx, "ratelimitpolicies")
	if err != nil {
		return policyView{}, err
	}
	for i := range table.Rows {
		var policy v1alpha1.RateLimitPolicy
		if err := json.Unmarshal(table.Rows[i].Object.Raw, &policy); err != nil {
			return policyView{}, err
		}
		if policy.Name == "checkout" {
			view, err := viewOf(&policy)
			view.shared = view.shared || len(table.Rows) > 1
			view.table = render(table)
			return view, err
		}
	}
	return policyView{unbounded: "no policy inside it", table: render(table)}, nil
}

func viewOf(p *v1alpha1.RateLimitPolicy) (policyView, error) {
	limit := &p.Spec.Limits[0]
	enforced, err := translate.Policy(p, nil)
	if err != nil {
		return policyView{}, err
	}
	params := enforced.Limits[0].Params(&enforced)
	first := params.Rates[0]
	window := time.Duration(first.Window) * time.Microsecond
	var rates []string
	for _, r := range limit.Rates {
		rates = append(rates, fmt.Sprintf("%d requests per %s", r.Limit, cmp.Or(string(r.Window), string(r.Cadence))))
	}
	rates[0] = fmt.Sprintf("%s, %s", limit.Algorithm, rates[0])
	return policyView{
		id:        fmt.Sprintf("%s/%d", p.UID, p.Generation),
		limit:     params.MostPerWindow(first),
		window:    window,
		rates:     strings.Join(rates, " and "),
		unbounded: unbounded(p, window),
		shared:    len(p.Spec.Limits) > 1 || len(limit.Rates) > 1 || limit.Algorithm != v1alpha1.FixedWindowAlgorithm,
		reset:     reset(p),
		moving:    moving(p),
		perTrip:   p.Status.Summary.RequestsPerRoundTrip,
	}, nil
}

// reset returns when a counter was set back last.
func reset(p *v1alpha1.RateLimitPolicy) time.Time {
	if s := p.Status.Reset; s != nil && s.Phase != v1alpha1.ResetFailed && s.Time != nil {
		return s.Time.Time
	}
	return time.Time{}
}

// moving says how far a move to another store is.
func moving(p *v1alpha1.RateLimitPolicy) string {
	if s := p.Status.Store; s != nil && s.Phase != v1alpha1.StoreServing {
		return fmt.Sprintf("store: %s, %s", s.Phase, s.Message)
	}
	return ""
}

// unbounded says why the first rate does not bound what the application sees.
func unbounded(p *v1alpha1.RateLimitPolicy, window time.Duration) string {
	limit := &p.Spec.Limits[0]
	switch {
	case p.Spec.Mode == v1alpha1.ShadowMode:
		return "mode Shadow: nothing is refused"
	case metav1.FormatLabelSelector(&p.Spec.PodSelector) != selector:
		return "the policy does not select " + selector
	case p.Spec.Consistency.Lease != nil && p.Spec.Consistency.Lease.Expiry == v1alpha1.CarryOverExpiry:
		return "credits are carried over from the window before"
	case limit.Rates[0].Cadence != "":
		return "the limit is a quota of longer than the demo"
	case limit.Key != nil:
		return "the limit holds for each value of its key"
	case len(limit.Match) > 0:
		return "the limit holds for some requests only"
	case window%(100*time.Millisecond) != 0:
		return "counts are kept in steps of 100ms"
	default:
		return ""
	}
}

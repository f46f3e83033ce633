package translate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// defaultBuckets is in how many parts a sliding window is counted.
const defaultBuckets = 60

func (t *translator) limit(path *field.Path, l *v1alpha1.Limit) policy.Limit {
	out := policy.Limit{
		Name:      l.Name,
		Mode:      policy.Mode(l.Mode),
		Match:     t.matches(path.Child("match"), l.Match),
		Exempt:    t.matches(path.Child("exempt"), l.Exempt),
		Key:       t.key(path.Child("key"), l.Key),
		Algorithm: policy.Algorithm(l.Algorithm),
		Any:       l.Combine == v1alpha1.CombineAny,
	}
	switch l.Algorithm {
	case v1alpha1.QuotaAlgorithm:
		out.Algorithm = policy.FixedWindow
	case v1alpha1.SlidingWindowAlgorithm:
		out.Buckets = int64(or(l.Buckets, defaultBuckets))
	case v1alpha1.LeakyBucketAlgorithm:
		out.MaxDelay = t.micros(path.Child("maxDelay"), string(l.MaxDelay))
	default: // has nothing of its own
	}
	offset := t.offset(path.Child("utcOffset"), l.UTCOffset)
	if l.Scope == v1alpha1.FederatedScope {
		t.draw(path, l, &out)
	} else {
		out.Rates = t.rates(path.Child("rates"), &out, l.Rates, offset)
		out.Overrides = t.overrides(path.Child("overrides"), &out, l.Overrides, offset)
	}
	out.Cost = t.cost(path.Child("cost"), &out, l.Cost)
	out.Fairness = t.fairness(path.Child("fairness"), l.Fairness)
	return out
}

func (t *translator) overrides(path *field.Path, l *policy.Limit, overrides []v1alpha1.Override, offset limiter.Micros) []policy.Override {
	var out []policy.Override
	seen := make(map[string]*field.Path)
	for i, o := range overrides {
		at := path.Index(i)
		out = append(out, policy.Override{
			Rates:  t.rates(at.Child("rates"), l, o.Rates, offset),
			Values: t.overridden(at.Child("values"), l.Key, o.Values, seen),
		})
	}
	return out
}

// overridden returns the values of one override as requests have them. Seen has those of the
// overrides before, and where they are named.
func (t *translator) overridden(path *field.Path, k *policy.Key, values []v1alpha1.KeyValue, seen map[string]*field.Path) []policy.Value {
	var out []policy.Value
	for i, v := range values {
		at := path.Index(i)
		value := t.keyValue(at, k, v)
		if k != nil && len(value) != len(k.Parts) {
			t.invalid(at.Child("parts"), fmt.Sprint(v.Parts), fmt.Sprintf("has %d parts, but the key has %d: write one string for each", len(value), len(k.Parts)))
		}
		joined := policy.JoinParts(value...)
		if first := seen[joined]; first != nil {
			t.invalid(at, fmt.Sprint(v.Parts), fmt.Sprintf("names the value of %s a second time: remove one of them", first))
		} else {
			seen[joined] = at
		}
		out = append(out, value)
	}
	return out
}

func (t *translator) cost(path *field.Path, l *policy.Limit, c *v1alpha1.Cost) *policy.Cost {
	if c == nil {
		return nil
	}
	out := &policy.Cost{
		Default:        c.Default,
		Max:            or(c.Max, c.Default),
		RequestHeader:  string(c.RequestHeader),
		ResponseHeader: string(c.ResponseHeader),
	}
	if most := l.AtOnce(l.Rates); len(t.errs) == 0 && out.Default > most {
		t.invalid(path.Child("default"), out.Default, fmt.Sprintf("is more than the limit admits at once (%d), so every request would be refused: lower it, or raise the limit", most))
	}
	return out
}

func (t *translator) fairness(path *field.Path, f *v1alpha1.Fairness) *policy.Fairness {
	if f == nil {
		return nil
	}
	out := &policy.Fairness{Tenant: t.keyPart(path.Child("tenant"), f.Tenant), DefaultWeight: int64(f.DefaultWeight), Reserve: f.Reserve}
	seen := make(map[string]bool)
	for i, w := range f.Weights {
		at := path.Child("weights").Index(i).Child("tenant")
		tenant := t.part(at, out.Tenant, w.Tenant)
		if seen[policy.JoinParts(tenant)] {
			t.invalid(at, w.Tenant, "names a tenant a second time: remove one of them")
		}
		seen[policy.JoinParts(tenant)] = true
		out.Weights = append(out.Weights, policy.Weight{Tenant: tenant, Weight: int64(w.Weight)})
	}
	return out
}

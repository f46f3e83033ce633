package translate

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	stores "github.com/weir-dev/weir/pkg/store"
)

// A Reset is what a policy asks to set back.
type Reset struct {
	Limit string
	Hash  *string // of the value whose counter it is; nil for all counters of the limit
}

// ResetOf returns what v1alpha1.ResetAnnotation of p names, of a policy that
// translates. The error names what is wrong with the annotation, and the cure.
func ResetOf(p *v1alpha1.RateLimitPolicy, translated *policy.Policy) (Reset, error) {
	target, request := cutLast(p.Annotations[v1alpha1.ResetAnnotation], "@")
	if request == "" {
		return Reset{}, errors.New("it names no request: write limit@request or limit=value@request, with anything new for the request, such as the time")
	}
	name, value, valued := strings.Cut(target, "=")
	var names []string
	for i := range translated.Limits {
		l := &translated.Limits[i]
		names = append(names, l.Name)
		switch {
		case l.Name != name:
			continue
		case l.Budget != nil:
			return Reset{}, fmt.Errorf("limit %s draws from FederatedBudget %s, whose windows cannot be set back: raise its limit, or wait for the next window", name, l.Budget.Name)
		case !valued:
			return Reset{Limit: name}, nil
		case l.Key == nil:
			return Reset{}, fmt.Errorf("limit %s has no key, so it has one counter: leave the value out, as in %s@request", name, name)
		}
		return resetOfValue(l, value)
	}
	return Reset{}, fmt.Errorf("there is no limit %q: the policy has %s", name, strings.Join(names, ", "))
}

func resetOfValue(l *policy.Limit, given string) (Reset, error) {
	hash, err := HashOfValue(l, given)
	if err != nil {
		return Reset{}, err
	}
	return Reset{Limit: l.Name, Hash: &hash}, nil
}

// HashOfValue returns the hash of a value of the limit's key, which it has, as users write it: parts are
// separated by commas, and encoded as in a URL. The error names the part that is wrong, and the
// cure.
func HashOfValue(l *policy.Limit, given string) (string, error) {
	var parts []string
	for part := range strings.SplitSeq(given, ",") {
		decoded, err := url.PathUnescape(part)
		if err != nil {
			return "", fmt.Errorf("part %q of the value is not encoded as in a URL (%w): write %%25 for a percent sign and %%2C for a comma", part, err)
		}
		parts = append(parts, decoded)
	}
	if len(parts) != len(l.Key.Parts) {
		return "", fmt.Errorf("the value has %d parts, but the key of limit %s has %d: separate them by commas, and write %%2C for a comma in one", len(parts), l.Name, len(l.Key.Parts))
	}
	t := &translator{}
	value := policy.JoinParts(t.keyValue(field.NewPath("value"), l.Key, v1alpha1.KeyValue{Parts: parts})...)
	if len(t.errs) > 0 {
		return "", t.errs.ToAggregate()
	}
	return stores.HashValue(value), nil
}

// cutLast returns what is before and after the last sep; all of s and nothing without one.
func cutLast(s, sep string) (before, after string) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i+len(sep):]
}

// resetAt returns when a counter of the policy was set back last, on its store's clock; 0
// for never.
func resetAt(p *v1alpha1.RateLimitPolicy) limiter.Instant {
	if r := p.Status.Reset; r != nil && r.At != nil {
		return limiter.Instant(r.At.UnixMicro())
	}
	return 0
}

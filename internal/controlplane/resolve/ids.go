package resolve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-dev/weir/pkg/policy"
)

// anyone stands for each namespace that no rule names, and as a pattern for each id.
const anyone = "*"

// IDs are the rules by which the FederatedBudgets of a namespace may have an id, as an
// administrator sets them. Ids are known to the whole cluster, and to others, so by the zero
// value a namespace may have only those that begin with its name and a slash: no two
// namespaces have one in common. It is a value that nobody changes, and safe for concurrent
// use.
type IDs struct {
	patterns map[string][]string // by namespace, or anyone
}

// ParseIDs reads rules NAMESPACE=PATTERN. A pattern is an id, the beginning of ids up to a
// slash and then *, or * for every id; a namespace with several rules may have what one of
// them says. An empty pattern, alone, lets a namespace have none. The namespace * stands for
// all that no rule names. The error names the rule that is not valid, and the cure.
func ParseIDs(rules []string) (IDs, error) {
	out := IDs{patterns: map[string][]string{}}
	for _, rule := range rules {
		namespace, pattern, found := strings.Cut(rule, "=")
		switch {
		case !found || namespace != anyone && len(validation.IsDNS1123Label(namespace)) > 0:
			return IDs{}, fmt.Errorf("%q: write NAMESPACE=PATTERN, such as shop=acme/*, with * for every namespace that has no rule", rule)
		case pattern != "" && pattern != anyone && !policy.IsBudgetID(strings.TrimSuffix(pattern, "/*")):
			return IDs{}, fmt.Errorf("%q: write an id, the beginning of ids such as acme/*, or * for every id, after the =", rule)
		}
		out.patterns[namespace] = append(out.patterns[namespace], pattern)
	}
	for _, namespace := range slices.Sorted(maps.Keys(out.patterns)) {
		if all := out.patterns[namespace]; len(all) > 1 && slices.Contains(all, "") {
			return IDs{}, fmt.Errorf("%q: %s has another rule, too: write one of the two", namespace+"=", namespace)
		}
	}
	return out, nil
}

// Permit returns nil when a budget of the namespace may have the id, and else an *IDError.
func (d IDs) Permit(namespace, id string) error {
	patterns, ruled := d.patterns[namespace]
	if !ruled {
		patterns, ruled = d.patterns[anyone]
	}
	if !ruled {
		patterns = []string{namespace + "/*"}
	}
	if slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, id) }) {
		return nil
	}
	return &IDError{Namespace: namespace, ID: id, Patterns: patterns}
}

func matches(pattern, id string) bool {
	if begin, open := strings.CutSuffix(pattern, anyone); open {
		return strings.HasPrefix(id, begin)
	}
	return pattern == id // an empty pattern matches no id
}

// IDError says that a FederatedBudget may not have its id.
type IDError struct {
	Namespace, ID string
	Patterns      []string // of ids that the namespace may have; one that is empty: none
}

// Error names the ids that may be chosen instead, and how an administrator allows this one.
func (e *IDError) Error() string {
	const allow = "let an administrator allow it by --federation-ids of the controller (federation.ids of the chart)"
	if slices.Equal(e.Patterns, []string{""}) {
		return fmt.Sprintf("namespace %s may not have the id %s, nor any other: %s", e.Namespace, e.ID, allow)
	}
	const most = 5
	may := strings.Join(e.Patterns[:min(most, len(e.Patterns))], ", ")
	if more := len(e.Patterns) - most; more > 0 {
		may += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("namespace %s may not have the id %s, but %s: choose such an id, or %s", e.Namespace, e.ID, may, allow)
}

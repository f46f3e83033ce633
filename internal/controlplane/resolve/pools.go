package resolve

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/policy"
)

// Pools returns the pools that select a pod of the namespace with these labels, in
// the order of Precedence. Those that Applying returns apply to the pod. A selector that
// cannot be read might select the pod, so it does. The pools are those of all, not copies.
func Pools(all []v1alpha1.ConcurrencyPool, namespace string, podLabels map[string]string) []*v1alpha1.ConcurrencyPool {
	var selecting []*v1alpha1.ConcurrencyPool
	for i := range all {
		if all[i].Namespace == namespace && selects(&all[i], podLabels) {
			selecting = append(selecting, &all[i])
		}
	}
	slices.SortFunc(selecting, Precedence)
	return selecting
}

// Applying returns those pools that apply to a pod, of the pools that select it in the order
// of Precedence: the first without match and those with one, at most policy.MaxPools.
func Applying(selecting []*v1alpha1.ConcurrencyPool) []*v1alpha1.ConcurrencyPool {
	var applying []*v1alpha1.ConcurrencyPool
	all := false // whether a pool of all requests is among them
	for _, p := range selecting {
		switch every := matchesAll(p); {
		case len(applying) == policy.MaxPools:
			return applying
		case every && all:
		default:
			all = all || every
			applying = append(applying, p)
		}
	}
	return applying
}

func matchesAll(p *v1alpha1.ConcurrencyPool) bool { return len(p.Spec.Match) == 0 }

// Precedence compares which of two pools of a namespace comes first for the pods that both
// select: the older one, or if both are of the same second the one whose name comes first. A
// pool that was not created yet is the youngest.
func Precedence(a, b *v1alpha1.ConcurrencyPool) int { return precedence(a, b) }

func selects(p *v1alpha1.ConcurrencyPool, podLabels map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
	return err != nil || selector.Matches(labels.Set(podLabels))
}

// A Rival is a pool without match that selects pods which another one selects, too.
type Rival struct {
	Pool *v1alpha1.ConcurrencyPool
	Both map[string]string // labels of pods that both select
}

// Rivals returns the pools without match of p's namespace that select pods which p selects,
// in the order of Precedence, none when p has a match. It goes by their selectors alone: two are rivals when one selects a pod with
// just the labels that the other asks for. Pods that happen to have the labels of two
// otherwise unrelated selectors show only once they exist.
func Rivals(all []v1alpha1.ConcurrencyPool, p *v1alpha1.ConcurrencyPool) []Rival {
	var rivals []Rival
	if !matchesAll(p) {
		return nil
	}
	for i := range all {
		other := &all[i]
		if other.Namespace != p.Namespace || other.Name == p.Name || !matchesAll(other) {
			continue
		}
		if both, ok := shared(p, other); ok {
			rivals = append(rivals, Rival{Pool: other, Both: both})
		}
	}
	slices.SortFunc(rivals, func(a, b Rival) int { return Precedence(a.Pool, b.Pool) })
	return rivals
}

// shared returns the labels of a pod that both select, if one of them asks for it.
func shared(a, b *v1alpha1.ConcurrencyPool) (both map[string]string, ok bool) {
	for _, p := range []*v1alpha1.ConcurrencyPool{a, b} {
		if least := leastLabels(&p.Spec.PodSelector); selects(a, least) && selects(b, least) {
			return least, true
		}
	}
	return nil, false
}

// leastLabels returns the labels that the selector asks for and no more: of several
// values the first.
func leastLabels(s *metav1.LabelSelector) map[string]string {
	least := maps.Clone(s.MatchLabels)
	if least == nil {
		least = map[string]string{}
	}
	for _, requirement := range s.MatchExpressions {
		switch _, known := least[requirement.Key]; {
		case known:
		case requirement.Operator == metav1.LabelSelectorOpExists:
			least[requirement.Key] = ""
		case requirement.Operator == metav1.LabelSelectorOpIn && len(requirement.Values) > 0:
			least[requirement.Key] = requirement.Values[0]
		}
	}
	return least
}

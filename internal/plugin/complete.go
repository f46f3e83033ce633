package plugin

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/selection"
)

// A namer returns the names that an argument may have, as far as they can be read.
type namer func(ctx context.Context, at *session) []string

// complete returns a function that completes the first argument in a shell.
func (c *cluster) complete(names namer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		at, err := c.open()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		found := names(cmd.Context(), at)
		slices.Sort(found)
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func policyNames(ctx context.Context, at *session) []string {
	var list v1alpha1.RateLimitPolicyList
	return namesOf(at.List(ctx, &list, client.InNamespace(at.namespace)), list.Items, func(p *v1alpha1.RateLimitPolicy) string { return p.Name })
}

func poolNames(ctx context.Context, at *session) []string {
	var list v1alpha1.ConcurrencyPoolList
	return namesOf(at.List(ctx, &list, client.InNamespace(at.namespace)), list.Items, func(p *v1alpha1.ConcurrencyPool) string { return p.Name })
}

func budgetNames(ctx context.Context, at *session) []string {
	var list v1alpha1.FederatedBudgetList
	return namesOf(at.List(ctx, &list, client.InNamespace(at.namespace)), list.Items, func(b *v1alpha1.FederatedBudget) string { return b.Name })
}

// podNames returns the pods that have a sidecar.
func podNames(ctx context.Context, at *session) []string {
	var list corev1.PodList
	err := at.List(ctx, &list, client.InNamespace(at.namespace), client.HasLabels{v1alpha1.EnforcerLabel})
	list.Items = slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return selection.Finished(&p) })
	return namesOf(err, list.Items, func(p *corev1.Pod) string { return p.Name })
}

// braked returns the objects that have a mode, as KIND/NAME.
func braked(ctx context.Context, at *session) []string {
	var all []string
	for prefix, names := range map[string]namer{"rlp/": policyNames, "cpool/": poolNames} {
		for _, name := range names(ctx, at) {
			all = append(all, prefix+name)
		}
	}
	return all
}

func namesOf[T any](err error, items []T, name func(*T) string) []string {
	if err != nil {
		return nil // nothing is completed then
	}
	var all []string
	for i := range items {
		all = append(all, name(&items[i]))
	}
	return all
}

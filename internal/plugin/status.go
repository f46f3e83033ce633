package plugin

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/controlplane/selection"
)

func newStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the pods that policies and pools select, and why requests to some are not limited",
		Long: "List the pods that RateLimitPolicies and ConcurrencyPools select. LIMITED says whether requests to the pod are limited, and " +
			"otherwise why not. It is Unknown until the controller has reported that every sidecar runs the generation of the object.\n\n" +
			"It reads pods, namespaces, ratelimitpolicies and concurrencypools.",
		Args: cobra.NoArgs,
	}
	where, as := newCluster(cmd), newFormat(cmd)
	cmd.RunE = where.run(func(cmd *cobra.Command, at *session, _ []string) error {
		found, err := gather(cmd.Context(), at)
		if err != nil {
			return err
		}
		rows := found.rows()
		if len(rows) == 0 && as.String() == "table" {
			cmd.PrintErrf("No RateLimitPolicy or ConcurrencyPool found %s.\n", at.elsewhere())
			return nil
		}
		return as.print(cmd.OutOrStdout(), statusList{Items: rows}, statusHeader, statusCells(rows))
	})
	return cmd
}

// A statusList is what is printed as JSON and YAML.
type statusList struct {
	Items []statusRow `json:"items"`
}

// A statusRow is a pod and one object that selects it. An object that selects none has a
// row without a pod.
type statusRow struct {
	Namespace string `json:"namespace"`
	Object    string `json:"object"` // kind/name
	Pod       string `json:"pod,omitempty"`
	Mode      string `json:"mode"`
	// Generation is the one that the sidecar limits by, nil while it does not, or that is not known.
	Generation *int64                 `json:"generation,omitempty"`
	Capture    string                 `json:"capture,omitempty"`
	Store      string                 `json:"store"`
	Share      *int64                 `json:"share,omitempty"` // of a pool
	Limited    metav1.ConditionStatus `json:"limited"`
	Reason     string                 `json:"reason,omitempty"` // why Limited is not True, or where it is not
}

var statusHeader = []string{"NAMESPACE", "OBJECT", "POD", "MODE", "GENERATION", "CAPTURE", "STORE", "SHARE", "LIMITED", "REASON"}

func statusCells(rows []statusRow) [][]string {
	cells := make([][]string, 0, len(rows))
	for _, r := range rows {
		cells = append(cells, []string{r.Namespace, r.Object, r.Pod, r.Mode, figure(r.Generation), r.Capture, r.Store, figure(r.Share), string(r.Limited), r.Reason})
	}
	return cells
}

func figure(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// A fleet is all that the rows follow from.
type fleet struct {
	pods       []corev1.Pod
	namespaces map[string]*corev1.Namespace // nil for one that could not be read
	policies   []v1alpha1.RateLimitPolicy
	pools      []v1alpha1.ConcurrencyPool
}

// gather reads the objects of the namespace that was chosen, or of all.
func gather(ctx context.Context, at *session) (*fleet, error) {
	var (
		pods     corev1.PodList
		policies v1alpha1.RateLimitPolicyList
		pools    v1alpha1.ConcurrencyPoolList
	)
	lists := []struct {
		name string
		into client.ObjectList
	}{{"pods", &pods}, {"ratelimitpolicies", &policies}, {"concurrencypools", &pools}}
	for _, list := range lists {
		if err := at.List(ctx, list.into, client.InNamespace(at.namespace)); err != nil {
			return nil, at.failed("listing "+list.name, err)
		}
	}
	f := &fleet{pods: pods.Items, policies: policies.Items, pools: pools.Items, namespaces: make(map[string]*corev1.Namespace)}
	for i := range f.pods {
		name := f.pods[i].Namespace
		if _, known := f.namespaces[name]; known || selection.HasSidecar(&f.pods[i]) {
			continue
		}
		f.namespaces[name] = nil
		var ns corev1.Namespace
		// Many users may not read it, and learn everything else.
		if at.Get(ctx, client.ObjectKey{Name: name}, &ns) == nil {
			f.namespaces[name] = &ns
		}
	}
	return f, nil
}

// rows returns the rows in the order of namespace, object and pod.
func (f *fleet) rows() []statusRow {
	rows := []statusRow{}
	for i := range f.policies {
		rows = append(rows, f.of(policyObject(&f.policies[i]))...)
	}
	for i := range f.pools {
		rows = append(rows, f.of(f.poolObject(&f.pools[i]))...)
	}
	slices.SortFunc(rows, func(a, b statusRow) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Pod, b.Pod))
	})
	return rows
}

// of returns the rows of one object.
func (f *fleet) of(o object) []statusRow {
	var rows []statusRow
	selector, err := metav1.LabelSelectorAsSelector(o.selector)
	if err != nil {
		return []statusRow{o.row(metav1.ConditionFalse, "spec.podSelector: "+err.Error())}
	}
	for i := range f.pods {
		pod := &f.pods[i]
		if pod.Namespace != o.namespace || selection.Finished(pod) || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		rows = append(rows, o.podRow(pod, f.namespaces[pod.Namespace]))
	}
	if len(rows) == 0 {
		rows = append(rows, o.row(metav1.ConditionFalse, "spec.podSelector selects no pod"))
	}
	return rows
}

// poolObject returns what the rows of a pool have in common.
func (f *fleet) poolObject(p *v1alpha1.ConcurrencyPool) object {
	o := object{
		kind: "concurrencypool", namespace: p.Namespace, name: p.Name, generation: p.Generation, mode: p.Spec.Mode,
		store: string(p.Spec.Coordinator.Type), selector: &p.Spec.PodSelector, conditions: p.Status.Conditions,
		shares: make(map[string]int64),
	}
	for _, s := range p.Status.Shares {
		o.shares[s.Pod] = s.Share
	}
	o.applies = func(pod *corev1.Pod) bool {
		applying := resolve.Applying(resolve.Pools(f.pools, pod.Namespace, pod.Labels))
		return slices.ContainsFunc(applying, func(one *v1alpha1.ConcurrencyPool) bool { return one.Name == p.Name })
	}
	return o
}

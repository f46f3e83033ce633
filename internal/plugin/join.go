package plugin

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// Names that docs/federation.md has.
const (
	memberSecret   = "weir-member-" // of the hub, with the member's name behind it
	hubSecret      = "weir-hub"     // of the member
	hubCredentials = "weir-hub-credentials"
)

// credentials are the entries of the Secret that the hub makes.
var credentials = []string{"ca.crt", "tls.crt", "tls.key", "token"}

// A joining is what is asked for.
type joining struct {
	member, endpoint            string
	systemNamespace, controller string
}

func newBudgetJoin() *cobra.Command {
	var j joining
	cmd := &cobra.Command{
		Use:   "join FEDERATEDBUDGET --member NAME --endpoint HOST:PORT",
		Short: "Print the manifests by which another cluster joins a budget of this one",
		Long: "Print the manifests by which the cluster of a member joins a FederatedBudget whose hub is this cluster: the Secret with the " +
			"member's credentials, the RoleBinding that lets its controller read and renew it, and the budget. Nothing is applied. " +
			"The member must be in spec.members, and its controller must run with --cluster-name NAME.\n\n" +
			"The output has the credentials of the member: send it to kubectl, and store it nowhere. " +
			"It takes the verb get on federatedbudgets, and on secrets of the namespace of the controller.",
		Example: "  kubectl weir budget join -n shop --context hub checkout-world --member us-east --endpoint weir-hub.example.com:15040 |\n" +
			"    kubectl --context us-east apply -f -",
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&j.member, "member", "", "name of the member that joins")
	flags.StringVar(&j.endpoint, "endpoint", "", "host:port of the Service weir-hub of this cluster, as the member reaches it")
	flags.StringVar(&j.systemNamespace, "system-namespace", "weir-system", "namespace of the controllers, in both clusters")
	flags.StringVar(&j.controller, "service-account", "weir-controller", "service account of the member's controller")
	for _, required := range []string{"member", "endpoint"} {
		cobra.CheckErr(cmd.MarkFlagRequired(required))
	}
	where := newNamespaced(cmd)
	cmd.ValidArgsFunction = where.complete(budgetNames)
	cmd.RunE = where.run(func(cmd *cobra.Command, at *session, args []string) error {
		if host, port, err := net.SplitHostPort(j.endpoint); err != nil || host == "" || port == "" {
			return fmt.Errorf("--endpoint is %q: use host:port, such as weir-hub.example.com:15040", j.endpoint)
		}
		budgets, err := at.budgets(cmd.Context(), args)
		if err != nil {
			return err
		}
		objects, err := j.objects(cmd.Context(), at, &budgets[0])
		if err != nil {
			return err
		}
		cmd.PrintErrln("The output has credentials. Apply the policies that draw from the budget to the member, too.")
		return printDocuments(cmd.OutOrStdout(), objects)
	})
	return cmd
}

// objects returns what is to be applied to the cluster of the member.
func (j *joining) objects(ctx context.Context, at *session, b *v1alpha1.FederatedBudget) ([]any, error) {
	var names []string
	for _, m := range b.Spec.Members {
		names = append(names, m.Name)
	}
	switch {
	case b.Spec.Hub != nil:
		return nil, fmt.Errorf("the hub of %s is another cluster, at %s: ask that one, with --context", b.Name, b.Spec.Hub.Endpoint)
	case b.Spec.Coordinator.Type != v1alpha1.KubernetesCoordinator:
		return nil, fmt.Errorf("%s is kept in %s and has no hub: apply the same object to the member, with a Secret that reaches the server", b.Name, b.Spec.Coordinator.Type)
	case !slices.Contains(names, j.member):
		return nil, fmt.Errorf("--member is %q: use one of spec.members (%s), or add it there first", j.member, strings.Join(names, ", "))
	case j.member == b.Status.Self:
		return nil, fmt.Errorf("--member is %q, which is this cluster: name another one", j.member)
	}
	made := &corev1.Secret{}
	key := client.ObjectKey{Namespace: j.systemNamespace, Name: memberSecret + j.member}
	if err := at.Get(ctx, key, made); err != nil {
		return nil, fmt.Errorf("reading the credentials that the hub makes for the member: %w; see that the budget is Accepted, and name the namespace of the controllers with --system-namespace", err)
	}
	for _, entry := range credentials {
		if len(made.Data[entry]) == 0 {
			return nil, fmt.Errorf("secret %s has no %s yet: try again in a minute", key, entry)
		}
	}
	joined := &v1alpha1.FederatedBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "FederatedBudget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name},
		Spec:       *b.Spec.DeepCopy(),
	}
	joined.Spec.Coordinator = v1alpha1.BudgetCoordinator{}
	joined.Spec.Escrow = v1alpha1.BudgetEscrow{} // of this cluster
	joined.Spec.Hub = &v1alpha1.BudgetHub{Endpoint: v1alpha1.HostPort(j.endpoint), SecretRef: v1alpha1.SecretReference{Name: hubSecret}}
	return []any{
		&corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: hubSecret},
			Type:       made.Type, Data: made.Data,
		},
		&rbacv1.RoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: hubCredentials},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: hubCredentials},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: j.systemNamespace, Name: j.controller}},
		},
		joined,
	}, nil
}

// printDocuments writes objects as YAML, without the status that a cluster fills in.
func printDocuments(out io.Writer, objects []any) error {
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		var fields map[string]any
		if err := yaml.Unmarshal(text, &fields); err != nil {
			return err
		}
		delete(fields, "status")
		if text, err = yaml.Marshal(fields); err != nil {
			return err
		}
		fmt.Fprintf(out, "---\n%s", text)
	}
	return nil
}

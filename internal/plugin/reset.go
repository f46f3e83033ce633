package plugin

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

func newReset() *cobra.Command {
	var value string
	cmd := &cobra.Command{
		Use:   "reset RATELIMITPOLICY LIMIT [--value VALUE]",
		Short: "Set a limit, or the counter of one value of its key, back to zero",
		Long: "Set all counters of a limit back to zero, or that of one value of its key. The open window may then admit its limit once " +
			"more. The command writes the annotation weir.dev/reset, and the leading controller carries it out at most once: " +
			"status.reset and an Event of the policy say how it went.\n\n" +
			"It takes the verbs get, patch and reset on ratelimitpolicies.",
		Example: "  kubectl weir reset -n shop checkout all\n" +
			"  kubectl weir reset -n shop checkout per-user --value alice",
		Args: cobra.ExactArgs(2),
	}
	cmd.Flags().StringVar(&value, "value", "", "value of the key, its parts separated by commas, %2C for a comma; default: all counters of the limit")
	where := newNamespaced(cmd)
	cmd.ValidArgsFunction = where.complete(policyNames)
	cmd.RunE = where.run(func(cmd *cobra.Command, at *session, args []string) error {
		policies, err := at.policies(cmd.Context(), args[:1])
		if err != nil {
			return err
		}
		p := &policies[0]
		request := time.Now().UTC().Format(time.RFC3339Nano) // one that was not there before
		if _, err := resetOf(p, args[1], value, request); err != nil {
			return err
		}
		before := p.DeepCopy()
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[v1alpha1.ResetAnnotation] = annotationOf(args[1], value, request)
		if err := at.Patch(cmd.Context(), p, client.MergeFrom(before), client.FieldOwner(manager)); err != nil {
			return fmt.Errorf("annotating the policy: %w; this takes the verbs patch and reset on ratelimitpolicies, as the ClusterRole weir-policy-resetter has them", err)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "ratelimitpolicy/%s: asked to set back %s. The open window may admit its limit once more.\n", p.Name, before.Name+"/"+args[1])
		cmd.PrintErrf("To see how it went: kubectl get ratelimitpolicy -n %s %s -o jsonpath='{.status.reset}'\n", p.Namespace, p.Name)
		return nil
	})
	return cmd
}

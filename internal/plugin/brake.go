package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// manager is the name of the plugin as the owner of fields, and as the reporter of Events.
const manager = "kubectl-weir"

func newBrake() *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use:   "brake KIND/NAME [--reason TEXT]",
		Short: "Stop the refusals of a policy or pool at once",
		Long: "Stop the refusals of a RateLimitPolicy or ConcurrencyPool in all pods at once: spec.mode becomes Shadow, which counts " +
			"refusals and lets requests pass. kubectl weir release ends it. An Event of the object says who braked, and why.\n\n" +
			"Sidecars follow while they are connected to the controller. A tool that applies the object from elsewhere, such as Argo CD, " +
			"may set the mode back.\n\n" +
			"It takes the verbs get and patch on the kind, and create on events.",
		Example: "  kubectl weir brake -n shop rlp/checkout --reason 'orders are refused'\n" +
			"  kubectl weir release -n shop rlp/checkout",
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&why, "reason", "", "text for the Event")
	where := newNamespaced(cmd)
	cmd.ValidArgsFunction = where.complete(braked)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		b, err := where.find(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if b.mode() == v1alpha1.ShadowMode {
			return fmt.Errorf("%s is in mode Shadow already, so it refuses nothing", b)
		}
		if err := b.patch(cmd.Context(), `"Shadow"`); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s is in mode Shadow: it refuses nothing any more, as soon as sidecars have generation %d.\n", b, b.object.GetGeneration())
		b.report(cmd, "Braked", corev1.EventTypeWarning, why)
		return nil
	}
	return cmd
}

func newRelease() *cobra.Command {
	var why string
	var force bool
	cmd := &cobra.Command{
		Use:   "release KIND/NAME [--reason TEXT]",
		Short: "Enforce a policy or pool again that was braked",
		Long: "Enforce a RateLimitPolicy or ConcurrencyPool again that kubectl weir brake stopped. It refuses to end a Shadow that " +
			"was set otherwise, as that may be a trial, unless --force is given.\n\n" +
			"It takes the verbs get and patch on the kind, and create on events.",
		Example: "  kubectl weir release -n shop rlp/checkout",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&why, "reason", "", "text for the Event")
	cmd.Flags().BoolVar(&force, "force", false, "enforce also an object that was put in mode Shadow otherwise")
	where := newNamespaced(cmd)
	cmd.ValidArgsFunction = where.complete(braked)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		b, err := where.find(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		switch by := modeSetBy(b.object); {
		case b.mode() == v1alpha1.EnforceMode:
			return fmt.Errorf("%s is in mode Enforce already", b)
		case by != manager && !force:
			return fmt.Errorf("%s was put in mode Shadow by %s and not by brake: edit it there, or add --force", b, by)
		}
		if err := b.patch(cmd.Context(), "null"); err != nil { // the default of the API is Enforce
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s is in mode Enforce: it refuses as soon as sidecars have generation %d.\n", b, b.object.GetGeneration())
		b.report(cmd, "Released", corev1.EventTypeNormal, why)
		return nil
	}
	return cmd
}

// A brakeable is an object with a mode.
type brakeable struct {
	at     *session
	kind   string
	object client.Object
}

// find reads the object that KIND/NAME names.
func (c *cluster) find(ctx context.Context, kindAndName string) (*brakeable, error) {
	b := &brakeable{}
	kind, name, ok := strings.Cut(kindAndName, "/")
	switch kind {
	case "rlp", "ratelimitpolicy", "ratelimitpolicies":
		b.kind, b.object = "RateLimitPolicy", &v1alpha1.RateLimitPolicy{}
	case "cpool", "concurrencypool", "concurrencypools":
		b.kind, b.object = "ConcurrencyPool", &v1alpha1.ConcurrencyPool{}
	case "fbud", "federatedbudget", "federatedbudgets":
		return nil, fmt.Errorf("%s: a FederatedBudget has no mode: name the policies that draw from it, as rlp/NAME", kindAndName)
	default:
		ok = false
	}
	if !ok || name == "" {
		return nil, fmt.Errorf("the object is %q: use rlp/NAME or cpool/NAME", kindAndName)
	}
	var err error
	if b.at, err = c.open(); err != nil {
		return nil, err
	}
	if err := b.at.Get(ctx, client.ObjectKey{Namespace: b.at.namespace, Name: name}, b.object); err != nil {
		return nil, b.at.failed("reading the object", err)
	}
	return b, nil
}

// String returns the kind and the name.
func (b *brakeable) String() string { return strings.ToLower(b.kind) + "/" + b.object.GetName() }

func (b *brakeable) mode() v1alpha1.PolicyMode {
	switch o := b.object.(type) {
	case *v1alpha1.RateLimitPolicy:
		return o.Spec.Mode
	case *v1alpha1.ConcurrencyPool:
		return o.Spec.Mode
	default:
		return ""
	}
}

// patch sets the mode, unless the object changed since it was read.
func (b *brakeable) patch(ctx context.Context, mode string) error {
	text := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"mode":%s}}`, b.object.GetResourceVersion(), mode)
	if err := b.at.Patch(ctx, b.object, client.RawPatch(types.MergePatchType, []byte(text)), client.FieldOwner(manager)); err != nil {
		return b.at.failed("setting spec.mode of "+b.String(), err)
	}
	return nil
}

// report writes the Event. Without the right to, the mode is changed all the same.
func (b *brakeable) report(cmd *cobra.Command, reason, severity, why string) {
	note := "kubectl weir " + cmd.Name()
	if why != "" {
		note += ": " + why
	}
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.object.GetNamespace(), GenerateName: b.object.GetName() + "-"},
		EventTime:  metav1.NewMicroTime(time.Now()),
		Regarding: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: b.kind, Namespace: b.object.GetNamespace(), Name: b.object.GetName(), UID: b.object.GetUID(),
		},
		ReportingController: manager, ReportingInstance: manager, Action: reason, Reason: reason, Type: severity, Note: note,
	}
	if err := b.at.Create(cmd.Context(), event); err != nil {
		cmd.PrintErrf("Warning: no Event was written: %v; this takes the verb create on events of events.k8s.io\n", err)
	}
}

// modeSetBy returns who set spec.mode last, as the API server recorded it.
func modeSetBy(o client.Object) string {
	for _, entry := range o.GetManagedFields() {
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, ok := fields.Spec["f:mode"]; ok {
			return entry.Manager
		}
	}
	return "an unknown manager"
}

package plugin

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/policy"
)

// offlineCluster names the cluster in what is compiled without one.
const offlineCluster = "offline"

// A manifest holds the objects of Weir that a file has.
type manifest struct {
	policies []*v1alpha1.RateLimitPolicy
	pools    []*v1alpha1.ConcurrencyPool
	budgets  []*v1alpha1.FederatedBudget
}

// standardInput is the name of a file that stands for what is piped to the command.
const standardInput = "-"

// readManifest reads a file of YAML documents, or stdin when the path is standardInput. It skips
// objects of other API groups, so that a file may have an app and its policy.
func readManifest(ctx context.Context, path string, stdin io.Reader) (*manifest, error) {
	read := func() ([]byte, error) { return os.ReadFile(path) } //nolint:gosec // the user names it
	if path == standardInput {
		read = func() ([]byte, error) { return io.ReadAll(stdin) }
	}
	text, err := read()
	if err != nil {
		return nil, fmt.Errorf("%w; name a file with -f", err)
	}
	m := &manifest{}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for i := 1; ; i++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = m.add(ctx, document)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", path, i, err)
		}
	}
	if len(m.policies)+len(m.pools)+len(m.budgets) == 0 {
		return nil, fmt.Errorf("%s has no object of %s: name another file with -f", path, v1alpha1.GroupVersion.Group)
	}
	return m, nil
}

func (m *manifest) add(ctx context.Context, document []byte) error {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return err
	}
	var object map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil { // keeps integers, as rules need them
		return err
	}
	var is metav1.TypeMeta
	if err := yaml.Unmarshal(document, &is); err != nil {
		return err
	}
	if group, err := schema.ParseGroupVersion(is.APIVersion); err != nil || group.Group != v1alpha1.GroupVersion.Group {
		return err
	}
	if is.APIVersion != v1alpha1.GroupVersion.String() {
		return fmt.Errorf("apiVersion is %q: use %s", is.APIVersion, v1alpha1.GroupVersion)
	}
	switch is.Kind {
	case "RateLimitPolicy":
		p := &v1alpha1.RateLimitPolicy{}
		m.policies = append(m.policies, p)
		return readObject(ctx, "ratelimitpolicies", object, p)
	case "ConcurrencyPool":
		p := &v1alpha1.ConcurrencyPool{}
		m.pools = append(m.pools, p)
		return readObject(ctx, "concurrencypools", object, p)
	case "FederatedBudget":
		b := &v1alpha1.FederatedBudget{}
		m.budgets = append(m.budgets, b)
		return readObject(ctx, "federatedbudgets", object, b)
	default:
		return fmt.Errorf("kind is %q: use RateLimitPolicy, ConcurrencyPool or FederatedBudget", is.Kind)
	}
}

func readObject(ctx context.Context, plural string, object map[string]any, into metav1.Object) error {
	kind, err := kindSchemas[plural]()
	if err != nil {
		return fmt.Errorf("the schema of %s: %w", plural, err)
	}
	if err := kind.read(ctx, object, into); err != nil {
		return err
	}
	if into.GetName() == "" {
		return errors.New("metadata.name is empty: set it")
	}
	into.SetNamespace(cmp.Or(into.GetNamespace(), metav1.NamespaceDefault))
	return nil
}

// budgetsOf returns the budgets of the file in a namespace, each as its first member draws
// from it.
func (m *manifest) budgetsOf(namespace string) translate.Budgets {
	return func(name string) (policy.FederatedBudget, error) {
		for _, b := range m.budgets {
			if b.Namespace == namespace && b.Name == name {
				return translate.Budget(b, b.Spec.Members[0].Name)
			}
		}
		return policy.FederatedBudget{}, errors.New("the file has no such FederatedBudget, so its rate is not checked: add it to check that too")
	}
}

// compile validates every object as the controller does, and compiles the policies.
// Warnings are given for objects that may not do what was meant.
func (m *manifest) compile() (set *policy.Set, warnings []string, err error) {
	var errs []error
	report := func(kind string, object metav1.Object, doubts []string, faults field.ErrorList) {
		name := kind + "/" + object.GetName()
		for _, doubt := range doubts {
			warnings = append(warnings, name+": "+doubt)
		}
		for _, fault := range faults {
			errs = append(errs, fmt.Errorf("%s: %w", name, fault))
		}
	}
	for _, b := range m.budgets {
		doubts, faults := translate.ValidateBudget(b, b.Spec.Members[0].Name)
		report("federatedbudget", b, doubts, faults)
	}
	for _, p := range m.pools {
		doubts, faults := translate.ValidatePool(p)
		report("concurrencypool", p, doubts, faults)
	}
	snapshot := policy.Snapshot{Cluster: offlineCluster}
	for _, p := range m.policies {
		budgets := m.budgetsOf(p.Namespace)
		doubts, faults := translate.Validate(p, budgets)
		report("ratelimitpolicy", p, doubts, faults)
		// Where Validate finds no fault, an error is of a budget, which is warned of.
		translated, _ := translate.Policy(p, budgets)
		snapshot.Policies = append(snapshot.Policies, translated)
	}
	if len(errs) > 0 {
		return nil, warnings, errors.Join(errs...)
	}
	slices.SortFunc(snapshot.Policies, func(a, b policy.Policy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	set, err = policy.Compile(snapshot)
	return set, warnings, err
}

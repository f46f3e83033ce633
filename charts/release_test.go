//go:build helm

package charts_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/apiserver"
)

// cluster is a real API server, without controllers or nodes.
type cluster struct {
	client.Client
	kubeconfig string
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	environment := &envtest.Environment{ControlPlaneStartTimeout: 90 * time.Second}
	config := apiserver.Start(t, environment)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, environment.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return &cluster{c, kubeconfig}
}

// helm runs Helm on the release, and returns what it printed.
func (c *cluster) helm(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "helm", append([]string{"--namespace", namespace, "--kubeconfig", c.kubeconfig}, args...)...)
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		t.Fatalf("helm %s: %v: %s", strings.Join(args, " "), err, said.String())
	}
	return string(out)
}

func (c *cluster) get(t *testing.T, object client.Object, name string) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, object); err != nil {
		t.Fatal(err)
	}
}

// TestRelease installs, upgrades and uninstalls on a real API server.
func TestRelease(t *testing.T) {
	c := startCluster(t)
	authority, _, err := cert.GenerateSelfSignedCertKey("weir", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	notes := c.helm(t, "install", "weir", chart, "--create-namespace")
	c.applyFirstPolicy(t, notes)

	// An upgrade must not take out what the controller put in.
	injector := &admissionregistrationv1.MutatingWebhookConfiguration{}
	c.get(t, injector, "weir-injector")
	before := injector.DeepCopy()
	for i := range injector.Webhooks {
		injector.Webhooks[i].ClientConfig.CABundle = authority
	}
	if err := c.Patch(t.Context(), injector, client.MergeFrom(before), client.FieldOwner("weir-controller")); err != nil {
		t.Fatal(err)
	}
	c.helm(t, "upgrade", "weir", chart, "--set", "webhook.failurePolicy=Ignore")
	c.get(t, injector, "weir-injector")
	for _, webhook := range injector.Webhooks {
		if *webhook.FailurePolicy != admissionregistrationv1.Ignore {
			t.Errorf("%s: the upgrade changed nothing", webhook.Name)
		}
		if !bytes.Equal(webhook.ClientConfig.CABundle, authority) {
			t.Errorf("%s: the upgrade took out the authority, so no pod starts until the controller puts it back", webhook.Name)
		}
	}

	c.helm(t, "uninstall", "weir")
	for name, object := range install(t) {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object.DeepCopy())
		if stays := object.GetKind() == "CustomResourceDefinition"; stays && err != nil {
			t.Errorf("%s went with the release, and every policy with it: %v", name, err)
		} else if !stays && !apierrors.IsNotFound(err) {
			t.Errorf("%s is left behind (%v)", name, err)
		}
	}
	c.get(t, &apiextensionsv1.CustomResourceDefinition{}, "ratelimitpolicies.weir.dev")
	// Kinds that stayed must not be in the way of the next release, be it in another
	// namespace.
	c.helm(t, "install", "weir", chart)
	c.helm(t, "uninstall", "weir")
	c.helm(t, "install", "weir", chart, "--create-namespace", "--take-ownership", "--namespace", "limits")
}

// applyFirstPolicy creates the policy that the notes lead to, as their reader would.
func (c *cluster) applyFirstPolicy(t *testing.T, notes string) {
	t.Helper()
	_, document, _ := strings.Cut(notes, "<<'EOF'\n")
	document, _, found := strings.Cut(document, "     EOF")
	if !found {
		t.Fatalf("the notes hold no policy:\n%s", notes)
	}
	policy := &v1alpha1.RateLimitPolicy{}
	if err := yaml.UnmarshalStrict([]byte(document), policy); err != nil {
		t.Fatalf("the policy of the notes: %v\n%s", err, document)
	}
	policy.Namespace = "default"
	// The API server serves a new kind a moment after it learns of it.
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		err := c.Create(ctx, policy)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		t.Errorf("the policy of the notes: %v", err)
	}
}

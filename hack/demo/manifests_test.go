package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/apiserver"
	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

var installed = stores{
	redis:    &servers.Server{Address: "127.0.0.1:6379"},
	postgres: &servers.Server{Address: "127.0.0.1:5432"},
}

// TestTheManifestsOfTheDemoAreValid asks an API server.
func TestTheManifestsOfTheDemoAreValid(t *testing.T) {
	server := startAPIServer(t)
	shop := func(of v1alpha1.StoreType) []byte {
		return []byte(application("127.0.0.1:80", "") + nextDocument + policy(installed.spec(of)))
	}
	t.Run("the pool, and the application at a backend", func(t *testing.T) {
		server.apply(t, []byte(application("127.0.0.1:80", "127.0.0.1:81")+nextDocument+poolManifest))
	})
	t.Run("the budget, in the cluster that keeps it and in another", func(t *testing.T) {
		for _, endpoint := range []string{"", "127.0.0.1:15040"} {
			server.apply(t, []byte(application("127.0.0.1:80", "")+nextDocument+budget(endpoint, hubSecret)))
		}
	})
	t.Run("every edit of the pool after every other", func(t *testing.T) {
		for first, patch := range poolPatches() {
			for then := range poolPatches() {
				server.patch(t, &v1alpha1.ConcurrencyPool{}, patch)
				server.patch(t, &v1alpha1.ConcurrencyPool{}, poolPatches()[then])
				if t.Failed() {
					t.Fatalf("%s after %s", then, first)
				}
			}
		}
	})
	t.Run("the policy for every store", func(t *testing.T) {
		for _, of := range []v1alpha1.StoreType{v1alpha1.ControllerStore, v1alpha1.RedisStoreType, v1alpha1.PostgresStoreType} {
			server.apply(t, shop(of))
			if got := server.checkout(t).Spec.Store.Type; got != of {
				t.Errorf("the policy for %s counts in %s", of, got)
			}
		}
	})
	t.Run("every edit of what every other left", func(t *testing.T) {
		for _, first := range installed.edits() {
			for _, then := range installed.edits() {
				server.patch(t, &v1alpha1.RateLimitPolicy{}, installed.patches()[first])
				server.patch(t, &v1alpha1.RateLimitPolicy{}, installed.patches()[then])
				if _, err := viewOf(server.checkout(t)); err != nil {
					t.Errorf("%s after %s: %v", then, first, err)
				}
			}
		}
	})
	t.Run("a replacement takes every edit back", func(t *testing.T) {
		shop := shop(v1alpha1.ControllerStore)
		server.kubectl(t, shop, "replace", "-f", "-")
		want := server.checkout(t).Spec
		for name, patch := range installed.patches() {
			server.patch(t, &v1alpha1.RateLimitPolicy{}, patch)
			server.kubectl(t, shop, "replace", "-f", "-")
			if diff := cmp.Diff(want, server.checkout(t).Spec); diff != "" {
				t.Errorf("after %s (-want +got):\n%s", name, diff)
			}
		}
	})
}

func TestOnlyStoresThatThereAreHaveAnEdit(t *testing.T) {
	var none stores
	for _, name := range []string{"redis.yaml", "postgres.yaml"} {
		if slices.Contains(none.edits(), name) {
			t.Errorf("without servers there is %s", name)
		}
	}
}

// An apiServer knows the policies, and nothing else of Weir.
type apiServer struct {
	client.Client
	kubeconfig string
}

func startAPIServer(t *testing.T) apiServer {
	t.Helper()
	environment := apiserver.WithDefinitions(filepath.Join("..", "..", "config", "crd", "bases"))
	config := apiserver.Start(t, environment)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	s := apiServer{Client: c, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	if err := os.WriteFile(s.kubeconfig, environment.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// apply applies manifests as kubectl apply --server-side does: a field that is not
// known is an error.
func (s apiServer) apply(t *testing.T, manifests []byte) {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, manifests)
		}
		text, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		err = s.Patch(t.Context(), object, client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("kubectl"), client.FieldValidation("Strict"))
		if err != nil {
			t.Errorf("applying %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// patch patches the policy or the pool as kubectl patch --type merge does, but a field
// that is not known is an error.
func (s apiServer) patch(t *testing.T, checkout client.Object, patch string) {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		t.Fatalf("%v in %s", err, patch)
	}
	checkout.SetNamespace(namespace)
	checkout.SetName("checkout")
	if err := s.Patch(t.Context(), checkout, client.RawPatch(types.MergePatchType, text), client.FieldValidation("Strict")); err != nil {
		t.Errorf("%s: %v", patch, err)
	}
}

// checkout returns the demo's policy.
func (s apiServer) checkout(t *testing.T) *v1alpha1.RateLimitPolicy {
	t.Helper()
	policy := &v1alpha1.RateLimitPolicy{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "checkout"}, policy); err != nil {
		t.Fatal(err)
	}
	return policy
}

func (s apiServer) kubectl(t *testing.T, input []byte, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), append(args, "--kubeconfig="+s.kubeconfig)...)
	cmd.Stdin = bytes.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("kubectl %v: %v\n%s", args, err, out)
	}
}

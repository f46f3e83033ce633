package plugin

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/apiserver"
)

// The API server that all tests share, with the CRDs and nothing else, and the kubeconfig
// of its administrator and of a user who may do nothing.
var (
	server     client.Client
	kubeconfig string
	powerless  string
)

func TestMain(m *testing.M) {
	environment := apiserver.WithDefinitions(filepath.Join("..", "..", "config", "crd", "bases"))
	apiserver.Main(environment, func(config *rest.Config) (int, error) { return runAsUsers(environment, config, m.Run) })
}

func runAsUsers(environment *envtest.Environment, config *rest.Config, run func() int) (code int, err error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return 0, err
		}
	}
	if server, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "kubectl-weir")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	for file, u := range map[*string]envtest.User{&kubeconfig: {Name: "admin", Groups: []string{"system:masters"}}, &powerless: {Name: "nobody"}} {
		user, err := environment.AddUser(u, nil)
		if err != nil {
			return 0, err
		}
		text, err := user.KubeConfig()
		if err != nil {
			return 0, err
		}
		*file = filepath.Join(dir, u.Name)
		if err := os.WriteFile(*file, text, 0o600); err != nil {
			return 0, err
		}
	}
	return run(), nil
}

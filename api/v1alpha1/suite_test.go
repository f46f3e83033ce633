package v1alpha1_test

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	weirv1alpha1 "github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/apiserver"
)

// The API server that all tests of this package share, with the CRDs and
// nothing else.
var (
	server       client.Client
	serverConfig *rest.Config
)

func TestMain(m *testing.M) {
	apiserver.Main(apiserver.WithDefinitions(filepath.Join("..", "..", "config", "crd", "bases")), func(config *rest.Config) (int, error) {
		scheme := runtime.NewScheme()
		if err := weirv1alpha1.AddToScheme(scheme); err != nil {
			return 0, err
		}
		var err error
		if server, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
			return 0, err
		}
		serverConfig = config
		return m.Run(), nil
	})
}

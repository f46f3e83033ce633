package apiserver

import (
	"fmt"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Run starts the server that an environment describes. The caller stops the environment, also after an error:
// a start that failed may leave processes behind.
func Run(environment *envtest.Environment) (*rest.Config, error) {
	config, err := environment.Start()
	if err != nil {
		return nil, fmt.Errorf("starting the API server (KUBEBUILDER_ASSETS must name the directory of its binaries, see `make assets`): %w", err)
	}
	return config, nil
}

// Start is Run until the test ends.
func Start(t testing.TB, environment *envtest.Environment) *rest.Config {
	t.Helper()
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := Run(environment)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// Clients returns clients of a new server that wait for nothing and leave no connection behind.
func Clients(t testing.TB) *kubernetes.Clientset {
	t.Helper()
	config := Start(t, &envtest.Environment{})
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	clients, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

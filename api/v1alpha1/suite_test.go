package v1alpha1_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

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
	code, err := runWithServer(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runWithServer(run func() int) (code int, err error) {
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	defer func() { // also after a failed start, which may leave processes behind
		if stopErr := environment.Stop(); err == nil {
			err = stopErr
		}
	}()
	serverConfig, err = apiserver.Run(environment)
	if err != nil {
		return 0, err
	}

	scheme := runtime.NewScheme()
	if err := weirv1alpha1.AddToScheme(scheme); err != nil {
		return 0, err
	}
	server, err = client.New(serverConfig, client.Options{Scheme: scheme})
	if err != nil {
		return 0, err
	}
	return run(), nil
}

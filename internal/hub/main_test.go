package hub

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

var apiServer *rest.Config // a real one, that all tests share

func TestMain(m *testing.M) {
	code, err := runSuite(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runSuite(m *testing.M) (code int, err error) {
	environment := &envtest.Environment{}
	defer func() { // also after a failed start, which may leave processes behind
		if stopErr := environment.Stop(); err == nil {
			err = stopErr
		}
	}()
	if apiServer, err = environment.Start(); err != nil {
		return 0, fmt.Errorf("starting the API server (KUBEBUILDER_ASSETS must name the directory of its binaries, see `make assets`): %w", err)
	}
	apiServer.QPS = -1 // tests wait for nothing
	leaks := []goleak.Option{
		goleak.IgnoreCurrent(),
		// client-go shares idle connections for the life of the process.
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
		goleak.IgnoreAnyFunction("net/http.(*http2clientConnReadLoop).run"),
	}
	if code = m.Run(); code == 0 {
		err = goleak.Find(leaks...)
	}
	return code, err
}

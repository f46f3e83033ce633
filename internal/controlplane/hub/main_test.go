package hub

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/weir-dev/weir/internal/testing/apiserver"
)

// environment is a real API server, which begins with the first test that needs it and
// is shared by all.
var environment envtest.Environment

var apiServer = sync.OnceValues(func() (*rest.Config, error) {
	config, err := apiserver.Run(&environment)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // tests wait for nothing
	return config, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if err := environment.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code == 0 && flag.Lookup("test.fuzz").Value.String() == "" { // workers of the fuzzer end later
		code = leaks()
	}
	os.Exit(code)
}

func leaks() int {
	err := goleak.Find(
		// client-go shares idle connections for the life of the process.
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
		goleak.IgnoreAnyFunction("net/http.(*http2clientConnReadLoop).run"),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

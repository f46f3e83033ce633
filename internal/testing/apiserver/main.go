package apiserver

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Main starts the server that an environment describes, runs all tests of a package by it, stops it and
// exits.
func Main(environment *envtest.Environment, run func(*rest.Config) (code int, err error)) {
	code, err := serve(environment, run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func serve(environment *envtest.Environment, run func(*rest.Config) (code int, err error)) (code int, err error) {
	defer func() { // also after a failed start, which may leave processes behind
		if stopErr := environment.Stop(); err == nil {
			err = stopErr
		}
	}()
	config, err := Run(environment)
	if err != nil {
		return 0, err
	}
	return run(config)
}

// WithDefinitions returns an environment of a server with the CustomResourceDefinitions in a
// directory.
func WithDefinitions(dir string) *envtest.Environment {
	return &envtest.Environment{CRDDirectoryPaths: []string{dir}, ErrorIfCRDPathMissing: true}
}

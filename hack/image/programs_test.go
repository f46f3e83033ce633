package main

import (
	"path"
	"runtime"
	"strings"
	"testing"
)

// TestProgramsAreReproducible packs what a release does, twice. The limit of 25 MiB
// holds by default. With -short it is for this machine's architecture alone, whose
// packages are compiled anyway.
func TestProgramsAreReproducible(t *testing.T) {
	architectures := "amd64,arm64"
	if testing.Short() {
		architectures = runtime.GOARCH
	}
	for _, program := range []string{"./cmd/sidecar", "./cmd/controller"} {
		t.Run(program, func(t *testing.T) {
			first, said := packed(t, "../..", program, "-tags", "grpcnotrace", "-architectures", architectures)
			second, _ := packed(t, "../..", program, "-tags", "grpcnotrace", "-architectures", architectures)
			if a, b := digest(t, index(t, first)), digest(t, index(t, second)); a != b {
				t.Errorf("the first build is %s, the second %s", a, b)
			}
			t.Log(said)
			for _, architecture := range strings.Split(architectures, ",") {
				checkBill(t, first, architecture, path.Base(program))
			}
		})
	}
}

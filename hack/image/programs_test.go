package main

import "testing"

// TestProgramsAreReproducible packs what a release does, twice. The limit of 25 MiB
// holds by default.
func TestProgramsAreReproducible(t *testing.T) {
	for _, program := range []string{"./cmd/sidecar", "./cmd/controller"} {
		t.Run(program, func(t *testing.T) {
			first, said := packed(t, "../..", program, "-tags", "grpcnotrace")
			second, _ := packed(t, "../..", program, "-tags", "grpcnotrace")
			if a, b := digest(t, index(t, first)), digest(t, index(t, second)); a != b {
				t.Errorf("the first build is %s, the second %s", a, b)
			}
			t.Log(said)
		})
	}
}

package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestOptions(t *testing.T) {
	env := map[string]string{
		"KUBEBUILDER_ASSETS": "/assets", "SCALE_POLICIES": "5,50", "SCALE_SIDECARS": "7", "SCALE_REST": "3s", "SCALE_STAGES": "shared,policies",
		"SCALE_MEMORY": "700",
	}
	o, err := readOptions(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.policies, []int{5, 50}) || !slices.Equal(o.sidecars, []int{7}) || len(o.shared) == 0 ||
		o.rest != 3*time.Second || o.memory != 700 || !slices.Equal(o.stages, []string{"shared", "policies"}) {
		t.Errorf("read %+v", o)
	}
}

func TestRefusedOptions(t *testing.T) {
	for name, value := range map[string]string{
		"SCALE_POLICIES": "10,10", "SCALE_SIDECARS": "0", "SCALE_SHARED": "many", "SCALE_REST": "30", "SCALE_STAGES": "policies,keys",
		"SCALE_MEMORY": "1Gi", "KUBEBUILDER_ASSETS": "",
	} {
		_, err := readOptions(func(of string) string {
			if of == name {
				return value
			}
			return map[string]string{"KUBEBUILDER_ASSETS": "/assets"}[of]
		})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%q: the error is %v", name, value, err)
		}
	}
}

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
	}
	o, err := readOptions(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.policies, []int{5, 50}) || !slices.Equal(o.sidecars, []int{7}) || len(o.shared) == 0 ||
		o.rest != 3*time.Second || !slices.Equal(o.stages, []string{"shared", "policies"}) {
		t.Errorf("read %+v", o)
	}
}

func TestRefusedOptions(t *testing.T) {
	for name, value := range map[string]string{
		"SCALE_POLICIES": "10,10", "SCALE_SIDECARS": "0", "SCALE_SHARED": "many", "SCALE_REST": "30", "SCALE_STAGES": "policies,keys",
		"KUBEBUILDER_ASSETS": "",
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

func TestWindowsAreHeldAgainstTheLimit(t *testing.T) {
	l := &load{limit: 3, admitted: map[int64]int64{}, doubtful: map[int64]int64{}}
	window := time.Unix(1_000_000_000, 0)
	for i := range 5 {
		at := window.Add(time.Duration(i+1) * time.Second)
		l.count(at, at)
	}
	next := window.Add(windowLength * time.Second)
	l.count(next.Add(-time.Millisecond), next.Add(-time.Millisecond)) // maybe of the next window
	l.count(next.Add(-time.Second), next.Add(time.Second))            // of either
	l.count(next.Add(time.Second), next.Add(time.Second))
	if got := l.over(); got != 2 {
		t.Errorf("%d over, want the 2 of the first window", got)
	}
	if text := l.text(); !strings.Contains(text, "of a limit of 3: 5, 1. 2 more,") {
		t.Errorf("the text is %q", text)
	}
}

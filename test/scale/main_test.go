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
	l := &load{limit: 3, leased: map[int64]int64{}, alone: map[int64]int64{}}
	window := time.Unix(1_000_000_000, 0)
	admit := func(after time.Duration, alone bool) { l.count(window.Add(after), window.Add(after), alone) }
	for i := range 3 {
		admit(time.Duration(i+1)*time.Second, false)
		admit(time.Duration(i+1)*time.Second, true)
	}
	end := windowLength * time.Second
	admit(end-time.Millisecond, false) // maybe of the next window
	l.count(window.Add(end-time.Second), window.Add(end+time.Second), true)
	admit(end+time.Second, false)
	if got := l.over(); got != 3 {
		t.Errorf("%d over, want the 3 of the first window", got)
	}
	if err := l.wrong(); err != nil {
		t.Error(err)
	}
	if text := l.text(); !strings.Contains(text, ": 3 + 3, 1 + 0. 2 more,") {
		t.Errorf("the text is %q", text)
	}
	for _, alone := range []bool{false, true} {
		l := &load{limit: 3, leased: map[int64]int64{}, alone: map[int64]int64{}}
		for range 4 {
			l.count(window.Add(time.Second), window.Add(time.Second), alone)
		}
		if l.wrong() == nil {
			t.Errorf("4 of a limit of 3 are right, by shares: %t", alone)
		}
	}
}

package inject

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWindowsPodsAreThoseThatCanRunNowhereElse(t *testing.T) {
	system := func(op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: corev1.LabelOSStable, Operator: op, Values: values}
	}
	zone := corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{windows}}
	term := func(all ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: all}
	}
	required := func(terms ...corev1.NodeSelectorTerm) corev1.PodSpec {
		return corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}}}
	}
	const in, notIn, exists = corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists
	tests := map[string]struct {
		spec corev1.PodSpec
		want bool
	}{
		"says nothing":                    {corev1.PodSpec{}, false},
		"its own system":                  {corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows}}, true},
		"its own system is Linux":         {corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Linux}}, false},
		"the selector":                    {corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelOSStable: windows}}, true},
		"the selector by the old label":   {corev1.PodSpec{NodeSelector: map[string]string{"beta.kubernetes.io/os": windows}}, true},
		"the selector of Linux":           {corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelOSStable: linux}}, false},
		"affinity without requirements":   {corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}}, false},
		"affinity to other pods":          {corev1.PodSpec{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}}, false},
		"required":                        {required(term(system(in, windows))), true},
		"required among others":           {required(term(zone, system(in, windows))), true},
		"required not to be Linux":        {required(term(system(notIn, "plan9", linux))), true},
		"required not to be Windows":      {required(term(system(notIn, windows))), false},
		"required Linux":                  {required(term(system(in, linux))), false},
		"either will do":                  {required(term(system(in, windows, linux))), false},
		"any system":                      {required(term(system(exists))), false},
		"none of a list":                  {required(term(system(in))), false},
		"another label of that value":     {required(term(zone)), false},
		"two ways, both Windows":          {required(term(system(in, windows)), term(zone, system(in, windows))), true},
		"two ways, one of them elsewhere": {required(term(system(in, windows)), term(zone)), false},
		"a way that no node meets":        {required(term(), term(system(in, windows))), true},
		"no way that a node meets":        {required(term()), false},
		"a way by the name of the node": {required(term(system(in, windows)), corev1.NodeSelectorTerm{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: in, Values: []string{"n1"}}},
		}), false},
		"preferred": {corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: term(system(in, windows))}},
		}}}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := runsOnWindows(&corev1.Pod{Spec: tc.spec}); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

const (
	linux   = string(corev1.Linux)
	windows = string(corev1.Windows)
)

// osLabels are those that the kubelet writes its system on.
var osLabels = []string{corev1.LabelOSStable, "beta.kubernetes.io/os"}

// runsOnWindows reports whether the pod can run on no other node.
func runsOnWindows(pod *corev1.Pod) bool {
	if pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows {
		return true
	}
	for _, key := range osLabels {
		if pod.Spec.NodeSelector[key] == windows {
			return true
		}
	}
	return requiresWindows(pod.Spec.Affinity)
}

// requiresWindows reports whether each way to meet the requirements on the node leads
// to Windows. Preferences decide nothing.
func requiresWindows(affinity *corev1.Affinity) bool {
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	ways := 0
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
			continue // no node meets it
		}
		ways++
		if !slices.ContainsFunc(term.MatchExpressions, isWindows) {
			return false
		}
	}
	return ways > 0
}

// isWindows reports whether no node that runs Linux meets r.
func isWindows(r corev1.NodeSelectorRequirement) bool {
	if !slices.Contains(osLabels, r.Key) {
		return false
	}
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return len(r.Values) > 0 && !slices.ContainsFunc(r.Values, func(v string) bool { return v != windows })
	case corev1.NodeSelectorOpNotIn:
		return slices.Contains(r.Values, linux)
	default:
		return false
	}
}

package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-dev/weir/internal/controlplane/inject"
)

// resourceFlags are the resources of sidecars in pods that choose none: quantities, as
// they are written.
type resourceFlags struct{ cpuRequest, cpuLimit, memoryRequest, memoryLimit string }

// A resourceFlag is one of them. Limits may be left out, requests may not: an autoscaler
// that reads a pod's use against its requests needs them on every container.
type resourceFlag struct {
	name  string
	value *string
	of    corev1.ResourceName
	limit bool
}

func (f *resourceFlags) all() []resourceFlag {
	return []resourceFlag{
		{"sidecar-cpu-request", &f.cpuRequest, corev1.ResourceCPU, false},
		{"sidecar-cpu-limit", &f.cpuLimit, corev1.ResourceCPU, true},
		{"sidecar-memory-request", &f.memoryRequest, corev1.ResourceMemory, false},
		{"sidecar-memory-limit", &f.memoryLimit, corev1.ResourceMemory, true},
	}
}

func (f *resourceFlags) add(flags *pflag.FlagSet) {
	usual := inject.DefaultResources()
	for _, flag := range f.all() {
		from, what := usual.Requests, "requested for sidecars"
		if flag.limit {
			from, what = usual.Limits, "that sidecars may use; 0: no limit"
		}
		value := ""
		if q, ok := from[flag.of]; ok {
			value = q.String()
		}
		flags.StringVar(flag.value, flag.name, value, fmt.Sprintf("`quantity` of %s %s. Annotations of pods and namespaces win", flag.of, what))
	}
}

// quantities are what was written; an empty limit is 0, which means no limit.
func (f *resourceFlags) quantities() (corev1.ResourceRequirements, []error) {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	var errs []error
	for _, flag := range f.all() {
		q, err := resource.ParseQuantity(cmp.Or(*flag.value, "0"))
		switch {
		case err != nil, q.Sign() < 0, q.IsZero() && !flag.limit:
			errs = append(errs, fmt.Errorf("--%s is %q: write a quantity above 0 such as 100m or 64Mi", flag.name, *flag.value))
		case flag.limit && !q.IsZero():
			r.Limits[flag.of] = q
		case !flag.limit:
			r.Requests[flag.of] = q
		}
	}
	return r, errs
}

// mistakes are what cannot work, each with its cure.
func (f *resourceFlags) mistakes() []error {
	r, errs := f.quantities()
	for name, limit := range r.Limits {
		if request := r.Requests[name]; request.Cmp(limit) > 0 {
			errs = append(errs, fmt.Errorf("--sidecar-%s-request is %s, above --sidecar-%s-limit %s: raise the limit, or set it to 0 for none", name, request.String(), name, limit.String()))
		}
	}
	return errs
}

// requirements are for flags without mistakes.
func (f *resourceFlags) requirements() corev1.ResourceRequirements {
	r, _ := f.quantities()
	return r
}

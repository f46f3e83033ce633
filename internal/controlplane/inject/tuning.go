package inject

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-dev/weir/api/v1alpha1"
)

const (
	defaultShutdownGracePeriod = 30 * time.Second
	maxShutdownGracePeriod     = time.Hour
	defaultPodGrace            = 30 * time.Second // set by Kubernetes
	dropUnderscores            = "drop"           // the sidecar's default
)

// DefaultResources returns the resources of a sidecar for which none were chosen. They
// are always requested: an autoscaler that reads a pod's use against its requests needs
// them on every container.
func DefaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("25m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
	}
}

// amounts are what the sidecar asks of one resource. A zero limit means none.
type amounts struct{ request, limit resource.Quantity }

func amountsOf(r *corev1.ResourceRequirements, name corev1.ResourceName) amounts {
	return amounts{request: r.Requests[name], limit: r.Limits[name]}
}

// tuning is what annotations choose about the sidecar.
type tuning struct {
	mode                string
	wantedCapture       Capture
	native              string // auto, enabled or disabled
	shutdownGracePeriod time.Duration
	underscores         string // drop, pass or refuse
	checkSocket         bool
	cpu, memory         amounts
}

// An annotated reads the annotations of a pod, and those of its namespace where
// the pod has none. It collects a warning for each value that cannot be used.
type annotated struct {
	pod, namespace map[string]string
	warnings       []string // up to maxWarnings
	more           int      // that there would be
}

func (a *annotated) lookup(key string) (string, bool) {
	if value, ok := a.pod[key]; ok {
		return value, true
	}
	value, ok := a.namespace[key]
	return value, ok
}

func (a *annotated) warn(format string, args ...any) {
	if a.full() {
		a.more++
		return
	}
	a.warnings = append(a.warnings, fmt.Sprintf(format, args...))
}

func (a *annotated) full() bool { return len(a.warnings) >= maxWarnings }

// report returns the warnings, and how many were left out.
func (a *annotated) report() []string {
	if a.more == 0 {
		return a.warnings
	}
	return append(a.warnings, fmt.Sprintf("%d more warnings are left out: act on these first", a.more))
}

// maxRepeated is how much of a text a message repeats, in bytes. None of use is longer.
const maxRepeated = 100

func quote(value string) string {
	if len(value) <= maxRepeated {
		return strconv.Quote(value)
	}
	return fmt.Sprintf("%q... (%d bytes)", strings.ToValidUTF8(value[:maxRepeated], ""), len(value))
}

// brief returns the name, or quotes its beginning where no name is that long.
func brief(name string) string {
	if len(name) <= maxRepeated {
		return name
	}
	return quote(name)
}

func (a *annotated) tuning(cfg *Config) tuning {
	resources := cfg.Resources
	if resources.Requests == nil {
		resources = DefaultResources()
	}
	return tuning{
		mode:                a.mode(),
		wantedCapture:       a.capture(cmp.Or(cfg.Capture, CaptureAuto)),
		native:              a.nativeSidecar(),
		shutdownGracePeriod: a.shutdownGracePeriod(),
		underscores:         a.underscores(),
		checkSocket:         a.checkSocket(),
		cpu:                 a.amounts(v1alpha1.SidecarCPURequestAnnotation, v1alpha1.SidecarCPULimitAnnotation, amountsOf(&resources, corev1.ResourceCPU)),
		memory:              a.amounts(v1alpha1.SidecarMemoryRequestAnnotation, v1alpha1.SidecarMemoryLimitAnnotation, amountsOf(&resources, corev1.ResourceMemory)),
	}
}

// mode is the pod's alone: it is a brake for one workload, and the mode of many
// is a matter of their policies.
func (a *annotated) mode() string {
	value, ok := a.pod[v1alpha1.ModeAnnotation]
	known := []string{v1alpha1.ModeEnforce, v1alpha1.ModeShadow, v1alpha1.ModeBypass}
	switch {
	case !ok:
		return v1alpha1.ModeEnforce
	case slices.Contains(known, value):
		return value
	}
	a.warn("%s is %s: use enforce, shadow or bypass; enforce is used", v1alpha1.ModeAnnotation, quote(value))
	return v1alpha1.ModeEnforce
}

func (a *annotated) capture(fallback Capture) Capture {
	value, ok := a.lookup(v1alpha1.CaptureAnnotation)
	switch {
	case !ok:
		return fallback
	case slices.Contains(Captures, Capture(value)):
		return Capture(value)
	}
	a.warn("%s is %s: use auto, redirect, port or explicit; %s is used", v1alpha1.CaptureAnnotation, quote(value), fallback)
	return fallback
}

func (a *annotated) shutdownGracePeriod() time.Duration {
	key := v1alpha1.ShutdownGracePeriodAnnotation
	value, ok := a.lookup(key)
	if !ok {
		return defaultShutdownGracePeriod
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 || d > maxShutdownGracePeriod {
		a.warn("%s is %s: use a duration above 0 and up to %s such as 30s; %s is used",
			key, quote(value), maxShutdownGracePeriod, defaultShutdownGracePeriod)
		return defaultShutdownGracePeriod
	}
	return d
}

func (a *annotated) underscores() string {
	key := v1alpha1.UnderscoresAnnotation
	switch value, ok := a.lookup(key); {
	case !ok:
	case slices.Contains([]string{dropUnderscores, "pass", "refuse"}, value):
		return value
	default:
		a.warn("%s is %s: use drop, pass or refuse; drop is used", key, quote(value))
	}
	return dropUnderscores
}

func (a *annotated) checkSocket() bool {
	key := v1alpha1.CheckSocketAnnotation
	switch value, ok := a.lookup(key); {
	case !ok, value == v1alpha1.Disabled:
	case value == v1alpha1.Enabled:
		return true
	default:
		a.warn("%s is %s: use enabled or disabled; disabled is used", key, quote(value))
	}
	return false
}

// amounts reads a request and a limit. The API server refuses a pod whose request
// is above its limit, so where one of the two was chosen the other follows it.
func (a *annotated) amounts(requestKey, limitKey string, defaults amounts) amounts {
	request, choseRequest := a.quantity(requestKey, defaults.request)
	limit, choseLimit := a.quantity(limitKey, defaults.limit)
	if limit.IsZero() || request.Cmp(limit) <= 0 {
		return amounts{request, limit}
	}
	switch {
	case choseRequest && choseLimit:
		a.warn("%s (%s) is above %s (%s): the defaults of both are used", requestKey, request.String(), limitKey, limit.String())
		return defaults
	case choseRequest:
		return amounts{request, request}
	default:
		return amounts{limit, limit}
	}
}

func (a *annotated) quantity(key string, fallback resource.Quantity) (_ resource.Quantity, chosen bool) {
	value, ok := a.lookup(key)
	if !ok {
		return fallback, false
	}
	if isNumber := value != "" && strings.Contains("+.0123456789", value[:1]); isNumber && !quantityForm.MatchString(value) {
		a.warn("%s is %s: use up to 12 digits before a point and 9 behind it, and a suffix such as m or Mi, without a sign or an exponent; the default is used",
			key, quote(value))
		return fallback, false
	} else if isNumber {
		if q, err := resource.ParseQuantity(value); err == nil && q.Sign() > 0 {
			return q, true
		}
	}
	a.warn("%s is %s: use a quantity above 0 such as 100m or 64Mi; the default is used", key, quote(value))
	return fallback, false
}

// quantityForm is the form of a quantity that costs little to read and to compare. A
// quantity with an exponent, such as 1e2147483647, is computed digit by digit.
var quantityForm = regexp.MustCompile(`^([0-9]{1,12}(\.[0-9]{0,9})?|\.[0-9]{1,9})([numk]|[KMGTPE]i|[MGTPE])?$`)

// requirements turns the amounts into a container's resources. A pod that sets a
// resource for itself as a whole has decided how much all its containers share,
// and the API server refuses containers that ask for more than that.
func (t tuning) requirements(pod *corev1.PodSpec) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for name, a := range map[corev1.ResourceName]amounts{corev1.ResourceCPU: t.cpu, corev1.ResourceMemory: t.memory} {
		if podWide(pod, name) {
			continue
		}
		r.Requests[name] = a.request
		if !a.limit.IsZero() {
			r.Limits[name] = a.limit
		}
	}
	return r
}

func podWide(pod *corev1.PodSpec, name corev1.ResourceName) bool {
	if pod.Resources == nil {
		return false
	}
	_, request := pod.Resources.Requests[name]
	_, limit := pod.Resources.Limits[name]
	return request || limit
}

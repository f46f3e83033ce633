package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/testing/devcluster"
)

const (
	sidecarName = inject.ContainerName

	appImage  = "weir.dev/demo-app:dev"
	idleImage = "weir.dev/idle:dev" // whose app is in this process
)

// openSpace makes a namespace that opted in, with a policy for its pods.
func (w *world) openSpace(ctx context.Context, name, about string, limit int64) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   name,
		Labels: map[string]string{v1alpha1.InjectionLabel: v1alpha1.Enabled, "about": about},
		// A process has no network of its own whose packets could be redirected.
		Annotations: map[string]string{v1alpha1.CaptureAnnotation: "port"},
	}}
	policy := &v1alpha1.RateLimitPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policyName, Namespace: name},
		Spec: v1alpha1.RateLimitPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Limits: []v1alpha1.Limit{{
				Name: "all", Rates: []v1alpha1.Rate{{Limit: limit, Window: v1alpha1.Duration(victimWindow.String())}},
			}},
		},
	}
	if err := errors.Join(w.kube.Create(ctx, ns), w.kube.Create(ctx, policy)); err != nil {
		return err
	}
	// The controller of service accounts creates it, without which no pod is.
	return await(ctx, "the service account of "+name, func() error {
		return w.kube.Get(ctx, types.NamespacedName{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
	})
}

// podOf returns a pod that the policy of its namespace selects.
func podOf(namespace, name, image string) *corev1.Pod {
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	app := corev1.Container{
		Name: "app", Image: image,
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		Env:   []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: field("metadata.name")}, {Name: "POD_IP", ValueFrom: field("status.podIP")}},
	}
	app.Args = map[string][]string{idleImage: {"infinity"}, appImage: {"serve"}}[image]
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": namespace}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(1)),
			Containers: []corev1.Container{app},
		},
	}
}

// startPod creates a pod and returns where it is reached once it is ready.
func (w *world) startPod(ctx context.Context, pod *corev1.Pod) (at devcluster.Endpoint, err error) {
	if err := w.kube.Create(ctx, pod); err != nil {
		return at, err
	}
	err = await(ctx, "pod "+pod.Name, func() error {
		all, err := w.cluster.Endpoints(ctx)
		if err != nil {
			return err
		}
		for _, e := range all {
			if e.Namespace == pod.Namespace && e.Pod == pod.Name {
				at = e
				return nil
			}
		}
		return errors.New("it is not ready")
	})
	return at, err
}

// An attempt creates a pod in the attackers' namespace as its editor, as a dry run, and returns
// what came of it: the warnings and the pod as it would be stored.
func attempt(edit func(*corev1.Pod)) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		pod := podOf(evilSpace, "", idleImage)
		pod.GenerateName = "evil-"
		edit(pod)
		return w.try(ctx, func(c client.Client) error { return c.Create(ctx, pod, client.DryRunAll) }, pod)
	}
}

// annotated is an attempt with an annotation.
func annotated(key, value string) func(context.Context, *world) (string, error) {
	return attempt(func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} })
}

// sidecarOf returns the injected container, nil for none.
func sidecarOf(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == sidecarName {
			return &pod.Spec.InitContainers[i]
		}
	}
	return nil
}

// describe says what of a pod attackers might want to change.
func describe(pod *corev1.Pod) string {
	c := sidecarOf(pod)
	if c == nil {
		return "no sidecar"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "sidecar image=%s command=%q args=%q env=%v limits=%v user=%v", c.Image, c.Command, c.Args, c.Env, c.Resources.Limits, c.SecurityContext)
	for _, m := range c.VolumeMounts {
		for _, v := range pod.Spec.Volumes {
			if v.Name == m.Name {
				fmt.Fprintf(&out, " mount %s=%s", m.MountPath, v.VolumeSource.String())
			}
		}
	}
	return out.String()
}

// warnings collects what the API server warns of.
type warnings struct {
	mu  sync.Mutex
	all []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (h *warnings) HandleWarningHeader(code int, _, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if code == 299 {
		h.all = append(h.all, text)
	}
}

// try does something as the editor of the attackers' namespace. It returns the error or that it
// is done, the warnings, and what became of a pod.
func (w *world) try(ctx context.Context, do func(client.Client) error, pod *corev1.Pod) (string, error) {
	return w.tryAs(ctx, evilUser, do, pod)
}

// tryAs is try as another user.
func (w *world) tryAs(ctx context.Context, user string, do func(client.Client) error, pod *corev1.Pod) (string, error) {
	heard := &warnings{}
	as := rest.CopyConfig(w.cluster.Config)
	as.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	as.WarningHandler = heard
	c, err := client.New(as, client.Options{Scheme: w.kube.Scheme(), Mapper: w.kube.RESTMapper()})
	if err != nil {
		return "", err
	}
	answer := "done"
	if err := do(c); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		answer = "error: " + err.Error()
	} else if pod != nil {
		answer += "; " + describe(pod)
	}
	heard.mu.Lock()
	defer heard.mu.Unlock()
	return answer + "; warnings: " + strings.Join(heard.all, " | "), nil
}

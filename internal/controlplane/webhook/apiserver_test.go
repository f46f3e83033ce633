package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/testing/apiserver"
)

// An apiServer is a real API server with the CRDs and the webhook configurations
// that users install, and our handlers behind them.
type apiServer struct {
	client.Client
	calls    atomic.Int64 // for pods, from the API server
	warnings warningLog
	down     func() // stops the webhooks for good
}

// TestRealAPIServer proves what only the API server can: which webhooks it calls, and
// what happens when none answers. The last part stops the webhooks.
func TestRealAPIServer(t *testing.T) {
	s := startAPIServer(t)
	s.mustCreate(t,
		// The sidecar must pass the strictest profile while a real API server enforces it.
		namespaceNamed("shop", map[string]string{v1alpha1.InjectionLabel: v1alpha1.Enabled, "pod-security.kubernetes.io/enforce": "restricted"}),
		namespaceNamed("plain", nil),
		namespaceNamed("off", map[string]string{v1alpha1.InjectionLabel: v1alpha1.Disabled}),
	)
	// The API server makes this one by itself, some time after its start.
	if err := s.Create(t.Context(), namespaceNamed("kube-system", nil)); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	for _, ns := range []string{"shop", "plain", "off", "kube-system"} {
		s.mustCreate(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "default"}})
	}
	t.Run("pods", s.testPods)
	t.Run("the sidecar gets no API credentials", s.testNoAPICredentials)
	t.Run("a malformed value", s.testMalformed)
	t.Run("every golden pod is valid", s.testGolden)
	t.Run("policies", s.testPolicies)
	t.Run("pools", s.testPools)
	t.Run("budgets", s.testBudgets)
	s.down()
	t.Run("while no webhook answers", s.testDown)
}

func (s *apiServer) testPods(t *testing.T) {
	hostNetwork := func(p *corev1.Pod) { p.Spec.HostNetwork = true }
	tests := map[string]struct {
		namespace    string
		annotation   string
		label        string
		change       func(*corev1.Pod)
		wantInjected bool
	}{
		"in a namespace that opted in":                 {namespace: "shop", wantInjected: true},
		"that opts out by annotation":                  {namespace: "shop", annotation: v1alpha1.Disabled},
		"that opts out by label":                       {namespace: "shop", label: v1alpha1.Disabled},
		"whose annotation wins over its label":         {namespace: "shop", annotation: v1alpha1.Enabled, label: v1alpha1.Disabled, wantInjected: true},
		"in a namespace without a label":               {namespace: "plain"},
		"that opts in by annotation":                   {namespace: "plain", annotation: v1alpha1.Enabled, wantInjected: true},
		"that opts in by label":                        {namespace: "plain", label: v1alpha1.Enabled, wantInjected: true},
		"that opts in and uses the host's network":     {namespace: "plain", annotation: v1alpha1.Enabled, change: hostNetwork},
		"that opts in, in a namespace that opted out":  {namespace: "off", annotation: v1alpha1.Enabled},
		"that opts in, in a system namespace":          {namespace: "kube-system", annotation: v1alpha1.Enabled},
		"that opts out in a namespace without a label": {namespace: "plain", annotation: v1alpha1.Disabled},
		"that opts in by label but out by annotation":  {namespace: "plain", annotation: v1alpha1.Disabled, label: v1alpha1.Enabled},
		"that uses the host's network":                 {namespace: "plain", change: hostNetwork},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := s.calls.Load()
			pod := podNamed(tc.namespace, tc.annotation, tc.label)
			if tc.change != nil {
				tc.change(pod)
			}
			s.mustCreate(t, pod)
			calls := s.calls.Load() - before
			if tc.wantInjected {
				if calls == 0 {
					t.Error("nobody called")
				}
				requireInjected(t, pod)
				return
			}
			if calls != 0 {
				t.Errorf("%d calls for a pod that shall not wait for us", calls)
			}
			if len(pod.Spec.InitContainers) != 0 {
				t.Error("injected")
			}
		})
	}
}

func requireInjected(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if len(pod.Spec.InitContainers) != 1 || pod.Spec.InitContainers[0].Name != inject.ContainerName {
		t.Fatalf("init containers %v, want the sidecar", pod.Spec.InitContainers)
	}
	if pod.Labels[v1alpha1.EnforcerLabel] != "true" || pod.Annotations[v1alpha1.InjectedAnnotation] == "" {
		t.Errorf("labels %v, annotations %v: the pod is not marked", pod.Labels, pod.Annotations)
	}
	if name := pod.Spec.Containers[0].Ports[0].Name; name != "http-app" {
		t.Errorf("the app's port is named %s", name)
	}
}

func (s *apiServer) testNoAPICredentials(t *testing.T) {
	pod := podNamed("shop", "", "")
	s.mustCreate(t, pod)
	mountsAPI := func(c *corev1.Container) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix(m.Name, "kube-api-access") })
	}
	if !mountsAPI(&pod.Spec.Containers[0]) {
		t.Fatal("not even the app has API credentials, so this proves nothing")
	}
	requireInjected(t, pod)
	if mountsAPI(&pod.Spec.InitContainers[0]) {
		t.Error("the API server gave the sidecar the app's API credentials")
	}
}

// testMalformed: in either kind of namespace the pod starts without a sidecar and
// its author gets an error.
func (s *apiServer) testMalformed(t *testing.T) {
	for _, namespace := range []string{"shop", "plain"} {
		s.warnings.reset()
		pod := podNamed(namespace, "yes", "")
		s.mustCreate(t, pod)
		if len(pod.Spec.InitContainers) != 0 {
			t.Errorf("%s: injected", namespace)
		}
		if got := s.warnings.text(); !strings.Contains(got, `weir.dev/inject is "yes": use "enabled" or "disabled"`) {
			t.Errorf("%s: warnings %q do not say what is wrong", namespace, got)
		}
	}
	s.warnings.reset()
	pod := podNamed("shop", "", "")
	pod.Annotations[v1alpha1.ShutdownGracePeriodAnnotation] = "soon"
	s.mustCreate(t, pod)
	requireInjected(t, pod)
	if got := s.warnings.text(); !strings.Contains(got, `shutdown-grace-period is "soon"`) {
		t.Errorf("warnings %q do not say what is wrong", got)
	}
}

// testGolden asks the API server whether it would accept the golden pods of
// package inject once they are injected, where it accepts them as they are.
func (s *apiServer) testGolden(t *testing.T) {
	inputs, err := filepath.Glob("../inject/testdata/*.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for _, input := range inputs {
		t.Run(filepath.Base(input), func(t *testing.T) {
			pod := readPod(t, input)
			pod.Namespace = "plain"
			delete(pod.Annotations, v1alpha1.InjectKey) // the webhook shall not do it
			delete(pod.Labels, v1alpha1.InjectKey)
			if s.Create(t.Context(), pod.DeepCopy(), client.DryRunAll) != nil {
				return
			}
			for _, cfg := range []inject.Config{
				{Image: "weir-sidecar:test", Capture: inject.CaptureRedirect, KubernetesMinor: 34},
				{Image: "weir-sidecar:test", Capture: inject.CapturePort, KubernetesMinor: 34},
				{Image: "weir-sidecar:test", KubernetesMinor: 28},
			} {
				out, report := inject.Inject(pod, inject.NamespaceFacts{Labels: enabled}, cfg)
				if err := s.Create(t.Context(), out, client.DryRunAll); err != nil {
					t.Errorf("the pod is valid and what injection makes of it is not: %v", err)
				}
				if report.Injected {
					accepted++
				}
			}
		})
	}
	if accepted < 250 {
		t.Errorf("only %d pods were accepted once injected, so little is proved", accepted)
	}
}

// readPod reads the second document of a golden input, whose third does not matter here.
func readPod(t *testing.T, path string) *corev1.Pod {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(bytes.Split(data, []byte("\n---\n"))[1], pod); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return pod
}

func (s *apiServer) testPolicies(t *testing.T) {
	s.warnings.reset()
	long := aPolicy("1h", "/a")
	long.Spec.Store.Memory = v1alpha1.VolatileMemory
	s.mustCreate(t, long)
	if got := s.warnings.text(); !strings.Contains(got, "set spec.store.memory to Auto or Durable") {
		t.Errorf("warnings %q do not name the cure of a long window", got)
	}
	s.testRestarts(t)
	bad := aPolicy("1s", "(")
	bad.Name = "bad"
	err := s.Create(t.Context(), bad)
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || len(status.Status().Details.Causes) != 1 {
		t.Errorf("error %v, want Invalid with one cause", err)
	}
}

// testRestarts: the status of one policy spares the author of the next a warning.
func (s *apiServer) testRestarts(t *testing.T) {
	s.warnings.reset()
	first := aDayIn("first", "redis.shop.svc:6379", "", "")
	s.mustCreate(t, first)
	if got := s.warnings.text(); !strings.Contains(got, "it is not known yet whether a restart of this Redis loses counters") {
		t.Errorf("warnings %q of a Redis that nothing is known of", got)
	}
	for _, tc := range []struct {
		restart v1alpha1.StoreRestart
		want    string
	}{{v1alpha1.LosslessRestart, ""}, {v1alpha1.LossyRestart, "set appendonly yes and appendfsync always"}} {
		first.Status = aDayIn("first", "redis.shop.svc:6379", tc.restart, metav1.ConditionTrue).Status
		for i := range first.Status.Conditions {
			first.Status.Conditions[i].LastTransitionTime = metav1.Now()
		}
		if err := s.Status().Update(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		s.warnings.reset()
		s.mustCreate(t, aDayIn("after-"+strings.ToLower(string(tc.restart)), "redis.shop.svc:6379", "", ""))
		if got := s.warnings.text(); !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") {
			t.Errorf("%s: warnings %q, want one that says %q", tc.restart, got, tc.want)
		}
	}
}

// learn has the client learn of a kind, for which its first question takes longer than
// webhooks wait.
func (s *apiServer) learn(t *testing.T, kind client.ObjectList) {
	t.Helper()
	if err := s.List(t.Context(), kind); err != nil {
		t.Fatal(err)
	}
}

func (s *apiServer) testPools(t *testing.T) {
	s.learn(t, &v1alpha1.ConcurrencyPoolList{})
	s.warnings.reset()
	s.mustCreate(t, aPool("checkout", time.Time{}, ""))
	if got := s.warnings.text(); got != "" {
		t.Errorf("warnings %q of a pool without a rival", got)
	}
	s.mustCreate(t, aPool("checkout-2", time.Time{}, "")) // of the same second, so the name decides
	if got := s.warnings.text(); !strings.Contains(got, "ConcurrencyPool checkout selects pods labelled app=checkout, too; it is older") {
		t.Errorf("warnings %q do not name the rival that applies", got)
	}
	err := s.Create(t.Context(), aPool("bad", time.Time{}, "("))
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || len(status.Status().Details.Causes) != 1 {
		t.Errorf("error %v, want Invalid with one cause", err)
	}
}

func (s *apiServer) testBudgets(t *testing.T) {
	s.learn(t, &v1alpha1.FederatedBudgetList{})
	s.warnings.reset()
	early := drawing("checkout", nil)
	early.Name = "early"
	s.mustCreate(t, early)
	if got := s.warnings.text(); !strings.Contains(got, "there is no FederatedBudget shop/checkout: create it") {
		t.Errorf("warnings %q of a policy before its budget do not name the cure", got)
	}
	s.warnings.reset()
	s.mustCreate(t, aBudget("checkout", time.Time{}))
	if got := s.warnings.text(); got != "" {
		t.Errorf("warnings %q of a budget that is alone with its id", got)
	}
	err := s.Create(t.Context(), changed(aBudget("theft", time.Time{}), func(b *v1alpha1.FederatedBudget) { b.Spec.ID = "bank/checkout" }))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.id: Forbidden: namespace shop may not have the id bank/checkout, but shop/*") {
		t.Errorf("error %v of an id that another namespace may have", err)
	}
	s.mustCreate(t, aBudget("checkout-2", time.Time{})) // of the same second, so the name decides
	if got := s.warnings.text(); !strings.Contains(got, "FederatedBudget shop/checkout has the id shop/checkout, too; it is older") {
		t.Errorf("warnings %q do not name the budget that counts", got)
	}
}

// testDown: only pods that asked for limits wait for us.
func (s *apiServer) testDown(t *testing.T) {
	for name, pod := range map[string]*corev1.Pod{
		"in a namespace without a label": podNamed("plain", "", ""),
		"that opted out":                 podNamed("shop", v1alpha1.Disabled, ""),
		"in a namespace that opted out":  podNamed("off", v1alpha1.Enabled, ""),
		"of a system namespace":          podNamed("kube-system", v1alpha1.Enabled, ""),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			s.mustCreate(t, pod)
			if took := time.Since(start); took > 4*time.Second {
				t.Errorf("the pod waited for %s", took)
			}
		})
	}
	t.Run("a pod that opted in does not start without limits", func(t *testing.T) {
		err := s.Create(t.Context(), podNamed("shop", "", ""))
		if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "namespace.inject.weir.dev") {
			t.Errorf("error %v, want one that names the webhook", err)
		}
	})
	t.Run("policies, pools and budgets can be edited", func(t *testing.T) {
		p := aPolicy("1s", "/a")
		p.Name = "while-down"
		s.mustCreate(t, p, aPool("while-down", time.Time{}, ""), aBudget("while-down", time.Time{}))
	})
}

func (s *apiServer) mustCreate(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := s.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

func namespaceNamed(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// podNamed is a restricted pod; an empty annotation or label is left out.
func podNamed(namespace, annotation, label string) *corev1.Pod {
	pod := aPod(map[string]string{})
	pod.Namespace, pod.OwnerReferences, pod.Labels = namespace, nil, map[string]string{}
	if annotation != "" {
		pod.Annotations[v1alpha1.InjectKey] = annotation
	}
	if label != "" {
		pod.Labels[v1alpha1.InjectKey] = label
	}
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
		RunAsNonRoot:             new(true),
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	return pod
}

func startAPIServer(t *testing.T) *apiServer {
	t.Helper()
	root := filepath.Join("..", "..", "..", "config")
	environment := apiserver.WithDefinitions(filepath.Join(root, "crd", "bases"))
	environment.WebhookInstallOptions.Paths = []string{filepath.Join(root, "webhook")}
	// Off by default in this environment; it is what mounts API credentials.
	environment.ControlPlane.GetAPIServer().Configure().Disable("disable-admission-plugins")
	config := apiserver.Start(t, environment)
	s := &apiServer{}
	s.Client = s.connect(t, config)
	s.down = s.serve(t, environment)
	return s
}

func (s *apiServer) connect(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = &s.warnings
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// countingServer counts the requests that come for pods, readable or not.
type countingServer struct {
	webhook.Server
	calls *atomic.Int64
}

func (c countingServer) Register(path string, hook http.Handler) {
	c.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path == InjectPath {
			c.calls.Add(1)
		}
		hook.ServeHTTP(w, r)
	}))
}

// serve starts the webhooks where the configurations point and returns how to
// stop them.
func (s *apiServer) serve(t *testing.T, environment *envtest.Environment) (stop func()) {
	t.Helper()
	where := environment.WebhookInstallOptions
	server := webhook.NewServer(webhook.Options{Host: where.LocalServingHost, Port: where.LocalServingPort, CertDir: where.LocalServingCertDir})
	injector, _ := newInjector()
	injector.Namespaces, injector.LiveNamespaces = s.Client, s.Client
	Register(countingServer{server, &s.calls}, s.Scheme(), injector, s.Client, "eu-west", resolve.IDs{})

	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- server.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	requireListening(t, fmt.Sprintf("%s:%d", where.LocalServingHost, where.LocalServingPort))
	return stop
}

func requireListening(t *testing.T, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the webhooks do not listen: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// warningLog keeps the warnings that the API server sends to its clients.
type warningLog struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (w *warningLog) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, text)
}

func (w *warningLog) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = nil
}

func (w *warningLog) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "\n")
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/apiserver"
	"github.com/weir-dev/weir/internal/testing/freeport"
)

const (
	patience = 30 * time.Second
	system   = "weir-system"
	shop     = "shop"
)

// cluster is a real API server with config/default applied.
type cluster struct {
	envtest.Environment
	client client.Client
}

// newCluster starts the API server and installs Weir, with the webhooks at a port
// of this machine.
func newCluster(t *testing.T, webhookPort int) *cluster {
	t.Helper()
	g := NewWithT(t)
	c := &cluster{}
	apiserver.Start(t, &c.Environment)
	scheme, err := newScheme()
	g.Expect(err).NotTo(HaveOccurred())
	c.client, err = client.New(c.Config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())

	c.install(t)
	c.reachWebhooks(t, webhookPort)
	return c
}

func (c *cluster) install(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	kubeconfig := filepath.Join(t.TempDir(), "admin")
	g.Expect(os.WriteFile(kubeconfig, c.KubeConfig, 0o600)).To(Succeed())
	apply := exec.Command(filepath.Join(c.ControlPlane.GetAPIServer().Path, "..", "kubectl"),
		"--kubeconfig", kubeconfig, "apply", "--server-side", "-k", filepath.Join("..", "..", "config", "default"))
	out, err := apply.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
}

func (c *cluster) reachWebhooks(t *testing.T, port int) {
	t.Helper()
	g := NewWithT(t)
	local := func(config *admissionv1.WebhookClientConfig) {
		config.URL = new(fmt.Sprintf("https://127.0.0.1:%d%s", port, *config.Service.Path))
		config.Service = nil
	}
	var mutating admissionv1.MutatingWebhookConfiguration
	g.Expect(c.client.Get(t.Context(), types.NamespacedName{Name: "weir-injector"}, &mutating)).To(Succeed())
	for i := range mutating.Webhooks {
		local(&mutating.Webhooks[i].ClientConfig)
	}
	g.Expect(c.client.Update(t.Context(), &mutating)).To(Succeed())
	var validating admissionv1.ValidatingWebhookConfiguration
	g.Expect(c.client.Get(t.Context(), types.NamespacedName{Name: "weir-validator"}, &validating)).To(Succeed())
	for i := range validating.Webhooks {
		local(&validating.Webhooks[i].ClientConfig)
	}
	g.Expect(c.client.Update(t.Context(), &validating)).To(Succeed())
}

// kubeconfig returns one with the rights of a component's account, and no others.
func (c *cluster) kubeconfig(t *testing.T, name string) string {
	t.Helper()
	g := NewWithT(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name}}
	request := &authenticationv1.TokenRequest{}
	g.Expect(c.client.SubResource("token").Create(t.Context(), account, request)).To(Succeed())

	config := clientcmdapi.NewConfig()
	config.Clusters["envtest"] = &clientcmdapi.Cluster{Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData}
	config.AuthInfos["controller"] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	config.Contexts["controller"] = &clientcmdapi.Context{Cluster: "envtest", AuthInfo: "controller"}
	config.CurrentContext = "controller"
	path := filepath.Join(t.TempDir(), "controller")
	g.Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := freeport.Port()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// asController has the test binary be the controller.
const asController = "WEIR_TEST_AS_CONTROLLER"

func TestMain(m *testing.M) {
	if os.Getenv(asController) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// startWebhooks starts the webhooks as a process of their own, with the rights they are
// installed with, and returns how to stop it.
func (c *cluster) startWebhooks(t *testing.T, port, healthPort int) (stop func()) {
	t.Helper()
	command := exec.Command(
		os.Args[0],
		"--kubeconfig="+c.kubeconfig(t, "weir-webhook"), "--components=webhooks",
		"--sidecar-image=weir-sidecar:test", "--cluster-name=eu-west", "--federation-ids="+shop+"=acme/*",
		"--webhook-host=127.0.0.1", "--webhook-port="+strconv.Itoa(port), "--certificate-sans=127.0.0.1",
		"--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:"+strconv.Itoa(healthPort), "--log-format=text",
	)
	command.Env = append(os.Environ(), asController+"=1")
	var logs bytes.Buffer
	command.Stdout, command.Stderr = &logs, &logs
	g := NewWithT(t)
	g.Expect(command.Start()).To(Succeed())
	stop = sync.OnceFunc(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil || t.Failed() {
			t.Errorf("the webhooks ended with %v; their log:\n%s", err, logs.String())
		}
	})
	t.Cleanup(stop)
	return stop
}

// expectReady waits until a process says that it is ready.
func expectReady(t *testing.T, healthPort int) {
	t.Helper()
	NewWithT(t).Eventually(func() (int, error) {
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", healthPort))
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}, patience, 200*time.Millisecond).Should(Equal(http.StatusOK), "a process is ready")
}

// TestAllLogsAreOfOneFormat, also what net/http and client-go write by themselves.
func TestAllLogsAreOfOneFormat(t *testing.T) {
	flags, out := log.Flags(), log.Writer()
	before := slog.Default()
	defer func() {
		slog.SetDefault(before)
		log.SetFlags(flags)
		log.SetOutput(out)
	}()
	var lines bytes.Buffer
	logger := logTo(newHandler(&options{}, &lines))
	log.Print("http: TLS handshake error")
	klog.Error("a request failed")
	logger.Info("started")
	klog.Flush()
	var messages []string
	for line := range bytes.Lines(lines.Bytes()) {
		var entry struct{ Msg string }
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		messages = append(messages, entry.Msg)
	}
	if want := []string{"http: TLS handshake error", "a request failed", "started"}; !slices.Equal(messages, want) {
		t.Errorf("messages are %q, want %q", messages, want)
	}
}

// TestRun runs the controller and the webhooks with the rights they are installed with, from
// their start to their orderly end.
func TestRun(t *testing.T) {
	g := NewWithT(t)
	webhookPort, webhookHealth, healthPort, hubPort := freePort(t), freePort(t), freePort(t), freePort(t)
	c := newCluster(t, webhookPort)
	leaks := []goleak.Option{
		goleak.IgnoreCurrent(),
		// client-go shares idle connections for the life of the process.
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
	}
	g.Expect(c.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: shop, Labels: map[string]string{v1alpha1.InjectionLabel: v1alpha1.Enabled},
	}})).To(Succeed())
	g.Expect(c.client.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "weir-controller-0"},
		Spec:       corev1.PodSpec{Containers: restricted(), SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}},
	})).To(Succeed())

	args := []string{
		"--kubeconfig=" + c.kubeconfig(t, "weir-controller"),
		"--components=coordinator",
		"--fleet-bind-address=127.0.0.1:" + strconv.Itoa(freePort(t)),
		"--cluster-name=eu-west", "--federation-ids=" + shop + "=acme/*",
		"--federation-bind-address=127.0.0.1:" + strconv.Itoa(hubPort), "--federation-sans=127.0.0.1",
		"--certificate-sans=127.0.0.1", "--allow-store-cidrs=127.0.0.0/8",
		"--metrics-bind-address=0",
		"--health-probe-bind-address=127.0.0.1:" + strconv.Itoa(healthPort),
		"--log-format=text",
	}
	// Before run replaces the logger of the whole process, which clients read.
	stopWebhooks := c.startWebhooks(t, webhookPort, webhookHealth)
	ctx, stop := context.WithCancel(t.Context())
	var logs bytes.Buffer
	var result error
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		result = run(ctx, args, environment(map[string]string{"POD_NAME": "weir-controller-0"}), io.Discard, &logs)
	}()
	t.Cleanup(func() {
		stop()
		<-stopped
		if t.Failed() {
			t.Logf("the controller's log:\n%s", logs.String())
		}
	})
	expectReady(t, healthPort)
	expectReady(t, webhookHealth)

	t.Run("the webhook refuses what cannot be enforced", func(t *testing.T) {
		policy := policyNamed("broken")
		policy.Spec.Limits[0].Match = []v1alpha1.Match{{Paths: []v1alpha1.PathMatch{{Type: v1alpha1.PathRegularExpression, Value: "("}}}}
		NewWithT(t).Eventually(func() error {
			return c.client.Create(t.Context(), policy.DeepCopy(), client.DryRunAll)
		}, patience).Should(MatchError(ContainSubstring("not an RE2 expression")))
	})
	t.Run("a policy is accepted, and waits for enforcers", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(c.client.Create(t.Context(), policyNamed("checkout"))).To(Succeed())
		c.expectReason(t, v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason)
		c.expectReason(t, v1alpha1.ProgrammedCondition, v1alpha1.NoEnforcersReason)
	})
	t.Run("a pool is accepted, and waits for enforcers", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(c.client.Create(t.Context(), &v1alpha1.ConcurrencyPool{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "backend"},
			Spec:       v1alpha1.ConcurrencyPoolSpec{Limit: v1alpha1.PoolLimit{Max: 100}},
		})).To(Succeed())
		g.Eventually(func() ([]string, error) {
			var pool v1alpha1.ConcurrencyPool
			err := c.client.Get(t.Context(), types.NamespacedName{Namespace: shop, Name: "backend"}, &pool)
			var reasons []string
			for _, condition := range pool.Status.Conditions {
				reasons = append(reasons, condition.Reason)
			}
			return reasons, err
		}, patience).Should(ContainElements(v1alpha1.AcceptedReason, v1alpha1.NoEnforcersReason))
	})
	t.Run("a budget is kept for the clusters that share it", func(t *testing.T) {
		c.expectHub(t, fmt.Sprintf("127.0.0.1:%d", hubPort))
	})
	t.Run("a pod is injected, and waited for", func(t *testing.T) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "checkout-0", Labels: map[string]string{"app": "checkout"}},
			Spec:       corev1.PodSpec{ServiceAccountName: "default", Containers: []corev1.Container{{Name: "app", Image: "app"}}},
		}
		g := NewWithT(t)
		g.Expect(c.client.Create(t.Context(), pod)).To(Succeed())
		g.Expect(pod.Labels).To(HaveKeyWithValue(v1alpha1.EnforcerLabel, "true"))
		g.Expect(pod.Spec.InitContainers).To(HaveLen(1))
		pod.Status.Phase = corev1.PodRunning
		g.Expect(c.client.Status().Update(t.Context(), pod)).To(Succeed())
		c.expectReason(t, v1alpha1.ProgrammedCondition, v1alpha1.ReconcilingReason)
		g.Eventually(c.events).WithContext(t.Context()).WithTimeout(patience).Should(ContainElement("Pod Injected"))
	})
	t.Run("its rights suffice to write Events", func(t *testing.T) {
		NewWithT(t).Eventually(c.events).WithContext(t.Context()).WithTimeout(patience).Should(ContainElements(
			"RateLimitPolicy Reconciling", "ConcurrencyPool Reconciling", "FederatedBudget Connected"))
	})
	t.Run("its version is a metric", func(t *testing.T) {
		n, err := testutil.GatherAndCount(metrics.Registry, "weir_build_info")
		NewWithT(t).Expect(n, err).To(Equal(1))
	})
	t.Run("its metrics are those that the guide and the alerts are checked by", expectMetrics)
	t.Run("the leader's pod is labelled", func(t *testing.T) {
		NewWithT(t).Eventually(c.leaders).WithContext(t.Context()).WithTimeout(patience).Should(Equal([]string{"weir-controller-0"}))
	})

	stopWebhooks()
	stop()
	g.Eventually(stopped, patience).Should(BeClosed())
	g.Expect(result).NotTo(HaveOccurred())
	g.Expect(c.leaders(t.Context())).To(BeEmpty(), "who stopped does not lead")
	var lease coordinationv1.Lease
	g.Expect(c.client.Get(t.Context(), types.NamespacedName{Namespace: system, Name: leaseName}, &lease)).To(Succeed())
	g.Expect(lease.Spec.HolderIdentity).To(HaveValue(BeEmpty()), "the lease is free for the next leader at once")
	var term corev1.ConfigMap
	g.Expect(c.client.Get(t.Context(), types.NamespacedName{Namespace: system, Name: "weir-term"}, &term)).To(Succeed())
	g.Expect(term.Data).To(HaveKey("stopped"), "the term ended in order")
	g.Expect(term.BinaryData).To(And(HaveKey("ledger"), HaveKey("pools")), "what was granted was handed over")
	http.DefaultClient.CloseIdleConnections()
	g.Eventually(func() error { return goleak.Find(leaks...) }, patience).Should(Succeed())
}

func policyNamed(name string) *v1alpha1.RateLimitPolicy {
	return &v1alpha1.RateLimitPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name},
		Spec: v1alpha1.RateLimitPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "checkout"}},
			Limits:      []v1alpha1.Limit{{Name: "all", Rates: []v1alpha1.Rate{{Limit: 100, Window: "1s"}}}},
		},
	}
}

// restricted are containers that the namespace of the controller admits.
func restricted() []corev1.Container {
	return []corev1.Container{{Name: "controller", Image: "weir-controller", SecurityContext: &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}}}
}

// expectReason waits until the policy checkout has the condition for the reason.
func (c *cluster) expectReason(t *testing.T, kind, reason string) {
	t.Helper()
	NewWithT(t).Eventually(func() (string, error) {
		var policy v1alpha1.RateLimitPolicy
		if err := c.client.Get(t.Context(), types.NamespacedName{Namespace: shop, Name: "checkout"}, &policy); err != nil {
			return "", err
		}
		if condition := meta.FindStatusCondition(policy.Status.Conditions, kind); condition != nil {
			return condition.Reason, nil
		}
		return "", nil
	}, patience).Should(Equal(reason))
}

// events returns the kinds of the objects that the Events of the namespace shop are
// about, and their reasons.
func (c *cluster) events(ctx context.Context) ([]string, error) {
	var list eventsv1.EventList
	err := c.client.List(ctx, &list, client.InNamespace(shop))
	var events []string
	for _, event := range list.Items {
		events = append(events, event.Regarding.Kind+" "+event.Reason)
	}
	return events, err
}

// leaders are the pods that the Service weir-fleet selects.
func (c *cluster) leaders(ctx context.Context) ([]string, error) {
	var pods corev1.PodList
	err := c.client.List(ctx, &pods, client.InNamespace(system), client.MatchingLabels{"weir.dev/leader": "true"})
	var names []string
	for _, pod := range pods.Items {
		names = append(names, pod.Name)
	}
	return names, err
}

package devcluster

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/internal/testing/devcluster/podrunner"
)

// asContainer makes the test binary behave as a container that serves what it
// was started with.
const asContainer = "serve"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asContainer {
		serve()
		return
	}
	goleak.VerifyTestMain(m)
}

// served is what a fake container reports of itself.
type served struct {
	Args, Env []string
	Token     string
	PID       int
}

func serve() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	server := &http.Server{
		Addr: os.Getenv("WEIR_SANDBOX_IP") + os.Args[2],
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			token, _ := os.ReadFile(os.Getenv("WEIR_SANDBOX_DIR") + "/var/run/token/jwt")
			_ = json.NewEncoder(w).Encode(served{Args: os.Args, Env: os.Environ(), Token: string(token), PID: os.Getpid()})
		}),
	}
	go func() { _ = server.ListenAndServe() }()
	<-ctx.Done()
	_ = server.Close()
}

func TestPodsRunAsProcesses(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(30 * time.Second)
	clients, pods := startBareCluster(t)
	ctx := t.Context()

	_, err := clients.AppsV1().Deployments("default").Create(ctx, fakeDeployment(), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	list := func(g Gomega) []corev1.Pod {
		l, err := clients.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=fake"})
		g.Expect(err).NotTo(HaveOccurred())
		return l.Items
	}
	available := func(n int32) func(Gomega) {
		return func(g Gomega) {
			d, err := clients.AppsV1().Deployments("default").Get(ctx, "fake", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(d.Status.AvailableReplicas).To(Equal(n))
			g.Expect(list(g)).To(HaveLen(int(n)))
		}
	}
	g.Eventually(available(2)).Should(Succeed())
	pod := list(g)[0]

	t.Run("arguments, environment and address are the pod's", func(t *testing.T) {
		g := NewWithT(t)
		app := ask(g, pod.Status.PodIP+":8080")
		g.Expect(app.Args[1:]).To(Equal([]string{asContainer, ":8080", "name=" + pod.Name}))
		g.Expect(app.Env).To(ContainElements("SELF="+pod.Name, "UID="+string(pod.UID), "IP="+pod.Status.PodIP, "MEMORY=64", "COSTS=$5"))
	})
	t.Run("a native sidecar runs beside the app and mounts a token bound to the pod", func(t *testing.T) {
		g := NewWithT(t)
		token := ask(g, pod.Status.PodIP+":9090").Token
		g.Expect(ask(g, pod.Status.PodIP+":8080").Token).To(BeEmpty())
		review, err := clients.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{"test"}},
		}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(review.Status.Authenticated).To(BeTrue(), review.Status.Error)
		g.Expect(review.Status.User.Extra).To(HaveKeyWithValue("authentication.kubernetes.io/pod-uid", authenticationv1.ExtraValue{string(pod.UID)}))
	})
	t.Run("a container that is killed is started again", func(t *testing.T) {
		g := NewWithT(t)
		before, err := pods.PID("default", pod.Name, "side")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(syscall.Kill(before, syscall.SIGKILL)).To(Succeed())
		g.Eventually(func(g Gomega) {
			now, err := pods.PID("default", pod.Name, "side")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(now).NotTo(Equal(before))
			p, err := clients.CoreV1().Pods("default").Get(ctx, pod.Name, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.Status.InitContainerStatuses[0].RestartCount).To(Equal(int32(1)))
			g.Expect(p.Status.InitContainerStatuses[0].LastTerminationState.Terminated.ExitCode).To(Equal(int32(137)))
		}, 10*time.Second).Should(Succeed())
	})
	t.Run("a deleted pod ends gracefully and is replaced", func(t *testing.T) {
		g := NewWithT(t)
		pid, err := pods.PID("default", pod.Name, "app")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(clients.CoreV1().Pods("default").Delete(ctx, pod.Name, metav1.DeleteOptions{})).To(Succeed())
		g.Eventually(func() bool {
			_, err := clients.CoreV1().Pods("default").Get(ctx, pod.Name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}, 10*time.Second).Should(BeTrue())
		g.Expect(syscall.Kill(pid, 0)).To(MatchError(syscall.ESRCH))
		g.Eventually(available(2), 20*time.Second).Should(Succeed())
	})
	t.Run("a Deployment scales", func(t *testing.T) {
		g := NewWithT(t)
		patch := []byte(`{"spec":{"replicas":1}}`)
		_, err := clients.AppsV1().Deployments("default").Patch(ctx, "fake", "application/merge-patch+json", patch, metav1.PatchOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(available(1), 20*time.Second).Should(Succeed())
	})
}

// startBareCluster starts a control plane and one node, without Weir.
func startBareCluster(t *testing.T) (*kubernetes.Clientset, *podrunner.Runner) {
	t.Helper()
	g := NewWithT(t)
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	g.Expect(assets).NotTo(BeEmpty(), "KUBEBUILDER_ASSETS is not set: `make assets` provides the programs, `make test-unit` sets it")
	c := &Cluster{Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), state: t.TempDir()}
	t.Cleanup(c.Stop)
	logs := t.TempDir()
	c.control = &controlPlane{assets: assets, state: c.state, logs: logs}
	g.Expect(c.control.start(t.Context(), c.Kubeconfig)).To(Succeed())
	var err error
	c.Clients, err = kubernetes.NewForConfig(c.control.config())
	g.Expect(err).NotTo(HaveOccurred())
	self, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.startNode(Config{
		Dir:     t.TempDir(),
		Program: func(_ *corev1.Pod, image string) (string, bool) { return self, image == "fake" },
		Log:     slog.New(slog.DiscardHandler),
	}, logs)).To(Succeed())
	return c.Clients, c.Pods
}

func fakeDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "fake"}
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	probe := func(port intstr.IntOrString) *corev1.Probe {
		return &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 10, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: port}}}
	}
	limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "fake"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To[int64](5),
					InitContainers: []corev1.Container{{
						Name: "side", Image: "fake", Args: []string{asContainer, ":9090"},
						RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
						StartupProbe:  probe(intstr.FromInt32(9090)),
						VolumeMounts:  []corev1.VolumeMount{{Name: "token", MountPath: "/var/run/token"}},
					}},
					Containers: []corev1.Container{{
						Name: "app", Image: "fake", Command: []string{"/fake", asContainer}, Args: []string{":8080", "name=$(SELF)"},
						Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
						ReadinessProbe: probe(intstr.FromString("http")),
						LivenessProbe:  probe(intstr.FromString("http")),
						Resources:      corev1.ResourceRequirements{Limits: limits},
						Env: []corev1.EnvVar{
							{Name: "SELF", ValueFrom: field("metadata.name")},
							{Name: "UID", ValueFrom: field("metadata.uid")},
							{Name: "IP", ValueFrom: field("status.podIP")},
							{Name: "MEMORY", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{
								Resource: "limits.memory", Divisor: resource.MustParse("1Mi"),
							}}},
							{Name: "COSTS", Value: "$$5"},
						},
					}},
					Volumes: []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
						Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
							Audience: "test", ExpirationSeconds: ptr.To[int64](600), Path: "jwt",
						}}},
					}}}},
				},
			},
		},
	}
}

func ask(g Gomega, address string) served {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + address)
	g.Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	var s served
	g.Expect(json.NewDecoder(resp.Body).Decode(&s)).To(Succeed())
	return s
}

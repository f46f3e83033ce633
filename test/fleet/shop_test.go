//go:build fleet

package fleet

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster"
	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
)

const (
	appImage = "weir.dev/demo-app:dev"
	limit    = 500
	perSet   = 5 * time.Second // the window of most specs
	overload = 400             // requests a second: four times what perSet admits
)

// A shop is one namespace with a policy, an application and load on it.
type shop struct {
	*site
	namespace string
	policy    *v1alpha1.RateLimitPolicy // nil for none
	window    time.Duration
	backend   string // that the application works at; empty for none
	tally     *traffic.Tally
	load      *traffic.Load
	stopLoad  context.CancelFunc
}

// openShop creates the namespace and the policy, changed by edit. No
// application runs yet.
func openShop(ctx context.Context, edit func(*v1alpha1.RateLimitPolicySpec)) *shop {
	GinkgoHelper()
	s := openEmptyShop(ctx, here)
	s.policy = policyIn(s.namespace)
	if edit != nil {
		edit(&s.policy.Spec)
	}
	Expect(s.kube.Create(ctx, s.policy)).To(Succeed())
	var err error
	s.window, err = time.ParseDuration(string(s.policy.Spec.Limits[0].Rates[0].Window))
	Expect(err).NotTo(HaveOccurred())
	return s
}

// openEmptyShop creates the namespace alone, under a name of its own.
func openEmptyShop(ctx context.Context, at *site) *shop {
	GinkgoHelper()
	return openShopIn(ctx, at, metav1.ObjectMeta{GenerateName: "shop-"})
}

// openShopIn creates the namespace alone, under that name.
func openShopIn(ctx context.Context, at *site, name metav1.ObjectMeta) *shop {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name.Name, GenerateName: name.GenerateName,
		Labels: map[string]string{v1alpha1.InjectionLabel: v1alpha1.Enabled},
		// A process has no network of its own whose packets could be redirected.
		Annotations: map[string]string{v1alpha1.CaptureAnnotation: "port"},
	}}
	Expect(at.kube.Create(ctx, ns)).To(Succeed())
	tally, err := traffic.NewTally()
	Expect(err).NotTo(HaveOccurred())
	s := &shop{site: at, namespace: ns.Name, tally: tally}
	DeferCleanup(s.close)
	return s
}

func policyIn(namespace string) *v1alpha1.RateLimitPolicy {
	return &v1alpha1.RateLimitPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "checkout", Namespace: namespace},
		Spec: v1alpha1.RateLimitPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "checkout"}},
			Limits: []v1alpha1.Limit{{
				Name:  "all",
				Rates: []v1alpha1.Rate{{Limit: limit, Window: v1alpha1.Duration(perSet.String())}},
			}},
		},
	}
}

func (s *shop) close(ctx SpecContext) {
	if s.stopLoad != nil {
		s.stopLoad()
	}
	zero := client.GracePeriodSeconds(0)
	Expect(s.kube.DeleteAllOf(ctx, &appsv1.Deployment{}, client.InNamespace(s.namespace))).To(Succeed())
	Expect(s.kube.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(s.namespace), zero)).To(Succeed())
	if s.policy != nil {
		Expect(s.kube.Delete(ctx, s.policy)).To(Or(Succeed(), WithTransform(client.IgnoreNotFound, Succeed())))
	}
	s.tally.Close()
}

// deploy runs the application and returns when all its pods are ready.
func (s *shop) deploy(ctx context.Context, name string, replicas int32, labels map[string]string) {
	GinkgoHelper()
	Expect(s.kube.Create(ctx, s.deployment(name, replicas, labels))).To(Succeed())
	s.awaitReady(ctx, int(replicas)+len(s.targets(ctx)))
}

func (s *shop) deployment(name string, replicas int32, labels map[string]string) *appsv1.Deployment {
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	all := map[string]string{"app": "checkout", "deployment": name}
	maps.Copy(all, labels)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"deployment": name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: all},
				Spec: corev1.PodSpec{
					AutomountServiceAccountToken:  new(false),
					TerminationGracePeriodSeconds: new(int64(10)),
					Containers: []corev1.Container{{
						Name: "app", Image: appImage, Args: []string{"serve"},
						Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
						ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
							HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)},
						}},
						Env: []corev1.EnvVar{
							{Name: "POD_NAME", ValueFrom: field("metadata.name")},
							{Name: "POD_IP", ValueFrom: field("status.podIP")},
							{Name: "TALLY", Value: s.tally.Address()},
							{Name: "BACKEND", Value: s.backend},
						},
					}},
				},
			},
		},
	}
}

// endpoints returns the shop's sidecars.
func (s *shop) endpoints(ctx context.Context) []devcluster.Endpoint {
	GinkgoHelper()
	all, err := s.cluster.Endpoints(ctx)
	Expect(err).NotTo(HaveOccurred())
	var own []devcluster.Endpoint
	for _, e := range all {
		if e.Namespace == s.namespace {
			own = append(own, e)
		}
	}
	return own
}

func (s *shop) targets(ctx context.Context) []traffic.Target {
	GinkgoHelper()
	var targets []traffic.Target
	for _, e := range s.endpoints(ctx) {
		targets = append(targets, traffic.Target{Pod: e.Pod, Address: e.Proxy})
	}
	return targets
}

// awaitReady returns when exactly n pods are ready.
func (s *shop) awaitReady(ctx context.Context, n int) {
	GinkgoHelper()
	Eventually(func() []traffic.Target { return s.targets(ctx) }, longest, 100*time.Millisecond).Should(HaveLen(n))
}

// startLoad sends load to all pods that are ready, now and later, until the
// spec is over.
func (s *shop) startLoad(perSecond float64) { s.startLoadOf(perSecond, nil) }

// startLoadOf is startLoad of requests that prepare may change.
func (s *shop) startLoadOf(perSecond float64, prepare func(*http.Request)) {
	ctx, stop := context.WithCancel(context.Background())
	s.stopLoad = stop
	s.load = traffic.NewLoad(perSecond)
	s.load.Prepare = prepare
	s.load.OnFailure = func(why error) { fmt.Fprintln(GinkgoWriter, "a request failed:", why) }
	s.load.SetTargets(s.targets(ctx))
	go s.load.Run(ctx)
	go func() {
		defer GinkgoRecover()
		for ctx.Err() == nil {
			if endpoints, err := s.cluster.Endpoints(ctx); err == nil {
				var targets []traffic.Target
				for _, e := range endpoints {
					if e.Namespace == s.namespace {
						targets = append(targets, traffic.Target{Pod: e.Pod, Address: e.Proxy})
					}
				}
				s.load.SetTargets(targets)
			}
			sleepUntil(ctx, time.Now().Add(100*time.Millisecond))
		}
	}()
}

// status returns the policy as it is now.
func (s *shop) status(ctx context.Context, g Gomega) v1alpha1.RateLimitPolicyStatus {
	g.Expect(s.kube.Get(ctx, client.ObjectKeyFromObject(s.policy), s.policy)).To(Succeed())
	return s.policy.Status
}

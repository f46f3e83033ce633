//go:build fleet

package fleet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
	"github.com/weir-dev/weir/internal/testing/redistest"
)

// memberSample is the one sample that is for another cluster than the rest.
const memberSample = "federated-member.yaml"

// serviceSample names a service on the internet. Suites of pkg/store/redis reach a bridge that
// speaks like it.
const serviceSample = "redis-rest.yaml"

// samples returns config/samples by file name, with the addresses of servers of this
// machine in place of those that the samples name.
func samples(ctx context.Context) map[string]string {
	GinkgoHelper()
	redis, _ := startRedis(ctx)
	postgres, err := servers.Postgres(ctx, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(postgres.Kill)
	sentinels := redistest.StartSentinels(GinkgoTB(), 3, "mymaster", redistest.Start(GinkgoTB()))
	cluster := redistest.StartCluster(GinkgoTB(), 3).Addrs()
	pairs := []string{
		"redis.weir-system.svc:6379", string(redis.Redis.Address), "redis.example.com:6379", string(redis.Redis.Address),
		"postgres.weir-system.svc:5432", postgres.Address, "database: weir", "database: " + servers.PostgresDatabase,
		"weir-hub.example.com:15040", here.cluster.Controller.FederationAddress(),
		"tls: Enabled", "tls: Disabled",
	}
	for i := range sentinels {
		pairs = append(pairs, fmt.Sprintf("sentinel-%d.redis.svc:26379", i), sentinels[i], fmt.Sprintf("redis-%d.redis.svc:6379", i), cluster[i])
	}
	files, err := filepath.Glob(filepath.Join(root, "config", "samples", "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	all := map[string]string{}
	for _, file := range files {
		if filepath.Base(file) == serviceSample {
			continue
		}
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		all[filepath.Base(file)] = strings.NewReplacer(pairs...).Replace(string(text))
		Expect(all[filepath.Base(file)]).NotTo(MatchRegexp(`\.(svc|example\.com):\d`), "%s names a server that runs nowhere", file)
	}
	return all
}

// keepCredentials creates the Secrets that the samples name, for the controller to read.
func (s *shop) keepCredentials(ctx context.Context) {
	GinkgoHelper()
	names := []string{"redis", "weir-redis", "weir-postgres"}
	for _, name := range names {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace}}
		if name == "weir-postgres" {
			secret.StringData = map[string]string{"username": servers.PostgresUser}
		}
		Expect(s.kube.Create(ctx, secret)).To(Succeed())
	}
	s.letRead(ctx, names...)
}

// letRead lets the controller read the Secrets with these names.
func (s *shop) letRead(ctx context.Context, names ...string) {
	GinkgoHelper()
	of := metav1.ObjectMeta{Name: "weir-reads-stores", Namespace: s.namespace}
	Expect(s.kube.Create(ctx, &rbacv1.Role{
		ObjectMeta: of,
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: names, Verbs: []string{"get"}}},
	})).To(Succeed())
	Expect(s.kube.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: of,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: of.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "weir-controller", Namespace: system}},
	})).To(Succeed())
}

// apply creates what a sample says in the shop's namespace and returns it.
func (s *shop) apply(ctx context.Context, file, text string) *unstructured.Unstructured {
	GinkgoHelper()
	o := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(text), o)).To(Succeed(), file)
	o.SetNamespace(s.namespace)
	Expect(s.kube.Create(ctx, o)).To(Succeed(), file)
	DeferCleanup(func(ctx SpecContext) {
		Expect(s.kube.Delete(ctx, o)).To(Or(Succeed(), WithTransform(client.IgnoreNotFound, Succeed())))
	})
	return o
}

// asks are requests that the samples' limits read: each path and method of a match, and
// what every key is made of.
func asks() func(*http.Request) {
	paths := []string{"/", "/reports", "/login", "/v1/orders", "/search?q=a&fresh=true", "/sign-up", "/password-reset"}
	var mu sync.Mutex
	turn := 0
	return func(r *http.Request) {
		mu.Lock()
		turn++
		n := turn
		mu.Unlock()
		u, err := r.URL.Parse(paths[n%len(paths)])
		if err != nil {
			return // a constant
		}
		r.URL = u
		if n%2 == 0 {
			r.Method = http.MethodPost
		}
		who := fmt.Sprintf("t%d", n%5)
		for _, h := range []string{"x-tenant", "x-team", "x-api-key", "x-account"} {
			r.Header.Set(h, who)
		}
		r.Header.Set("X-Forwarded-For", fmt.Sprintf("192.0.2.%d", n%5))
		r.Header.Set("Authorization", "Bearer e30.eyJzdWIiOiJhIiwiYWNjb3VudCI6eyJwbGFuIjoiZnJlZSJ9fQ.eA") // {"sub":"a","account":{"plan":"free"}}
	}
}

// programmed checks that all pods of each object follow it, and that nothing is wrong.
func (s *shop) programmed(ctx context.Context, g Gomega, all map[string]*unstructured.Unstructured) {
	for file, o := range all {
		g.Expect(s.kube.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		var status struct {
			Status struct {
				ObservedGeneration int64
				Conditions         []metav1.Condition
			}
		}
		text, err := o.MarshalJSON()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(yaml.Unmarshal(text, &status)).To(Succeed())
		for name, want := range map[string]metav1.ConditionStatus{
			v1alpha1.AcceptedCondition: metav1.ConditionTrue, v1alpha1.ProgrammedCondition: metav1.ConditionTrue,
			v1alpha1.ConnectedCondition: metav1.ConditionTrue, v1alpha1.StoreReachableCondition: metav1.ConditionTrue,
			v1alpha1.CoordinatorReachableCondition: metav1.ConditionTrue, v1alpha1.LearningCondition: metav1.ConditionFalse,
			v1alpha1.JWTKeysCondition: metav1.ConditionTrue,
		} {
			c := meta.FindStatusCondition(status.Status.Conditions, name)
			if c == nil && name != v1alpha1.AcceptedCondition {
				continue // not of this kind
			}
			g.Expect(c).To(And(Not(BeNil()), HaveField("Status", want), HaveField("ObservedGeneration", o.GetGeneration())), "%s: %s: %v", file, name, c)
		}
	}
}

// metric returns the sum of a metric's series at an address, 0 when there are none.
func metric(ctx context.Context, address, name string) (sum float64) {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	resp, err := http.DefaultClient.Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	Expect(resp).To(HaveHTTPStatus(http.StatusOK))
	text, err := io.ReadAll(resp.Body)
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 2 && strings.HasPrefix(fields[0]+"{", name+"{") {
			value, err := strconv.ParseFloat(fields[1], 64)
			Expect(err).NotTo(HaveOccurred())
			sum += value
		}
	}
	return sum
}

var _ = Describe("All samples at once", func() {
	It("are followed by every pod, which stays connected and serves", func(ctx SpecContext) {
		texts := samples(ctx)
		home := openEmptyShop(ctx, here)
		home.keepCredentials(ctx)
		away := openEmptyShop(ctx, openSite(ctx, "us-east", filepath.Join(workDir, "samples-us-east")))

		applied := map[*shop]map[string]*unstructured.Unstructured{home: {}, away: {}}
		apps := []string{}
		for file, text := range texts {
			if file == memberSample {
				continue
			}
			o := home.apply(ctx, file, text)
			applied[home][file] = o
			if app, _, _ := unstructured.NestedString(o.Object, "spec", "podSelector", "matchLabels", "app"); app != "" && !slices.Contains(apps, app) {
				apps = append(apps, app)
			}
		}
		(&federation{hub: home, member: away}).introduce(ctx, away, "us-east")
		for _, file := range []string{memberSample, "federated-policy.yaml"} {
			applied[away][file] = away.apply(ctx, file, texts[file])
		}
		for _, app := range apps {
			home.deploy(ctx, app, 1, map[string]string{"app": app})
		}
		away.deploy(ctx, "checkout", 1, nil)
		for s, all := range applied {
			Eventually(func(g Gomega) { s.programmed(ctx, g, all) }, longest, 500*time.Millisecond).Should(Succeed())
			s.startLoadOf(5*float64(len(s.targets(ctx))), asks())
		}
		rejected := metric(ctx, here.cluster.Controller.MetricsAddress(), "weir_coordinator_rejected_rows_total")

		// Long enough for each sidecar to report a window, return credits and be audited.
		from := time.Now()
		sleepUntil(ctx, from.Add(20*time.Second))
		for s, all := range applied {
			Eventually(func(g Gomega) { s.programmed(ctx, g, all) }, longest, 500*time.Millisecond).Should(Succeed())
			for _, e := range s.endpoints(ctx) {
				Expect(metric(ctx, e.Admin, "weir_fleet_streams_total")).To(BeEquivalentTo(1), "%s lost its stream", e.Pod)
				o := s.load.Of(e.Pod)
				Expect(o.Admitted.Total()).To(BeNumerically(">", 5), "%s refused nearly everything", e.Pod)
			}
			failed := s.load.Sum(from, time.Now(), func(o *traffic.Outcomes) *traffic.Series { return &o.Failed })
			Expect(failed).To(BeZero())
		}
		Expect(metric(ctx, here.cluster.Controller.MetricsAddress(), "weir_coordinator_rejected_rows_total")).To(Equal(rejected))
	}, SpecTimeout(5*time.Minute))
})

//go:build fleet

package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/testing/devcluster"
	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
)

// upgrade labels what `make test-upgrade` alone runs.
var upgrade = Label("upgrade")

// olderImage is the sidecar that the older version injects.
const olderImage = "weir.dev/sidecar:older"

// version returns the configuration of the cluster with one of the versions. Those of the older one
// are in a checkout of their own.
func version(older bool) devcluster.Config {
	from := os.Getenv("UPGRADE_CHECKOUT")
	cfg := devcluster.Config{
		Root: root, Assets: os.Getenv(assets), Dir: filepath.Join(workDir, "upgrade"),
		Controller: binary("controller"), ControllerArgs: slices.Clone(devcluster.QuickLeaderElection),
		Log: slog.New(slog.NewTextHandler(GinkgoWriter, nil)),
		Program: func(pod *corev1.Pod, image string) (string, bool) {
			if image == olderImage {
				return filepath.Join(from, "bin", "sidecar"), true
			}
			return program(pod, image)
		},
	}
	if older {
		cfg.Root, cfg.Controller = from, filepath.Join(from, "bin", "controller")
		cfg.ControllerArgs = append(cfg.ControllerArgs, "--sidecar-image="+olderImage)
	}
	return cfg
}

var _ = Describe("An upgrade under load", upgrade, func() {
	It("and back, with sidecars of both versions, loses no request and admits none too many", func(ctx SpecContext) {
		Expect(os.Getenv("UPGRADE_CHECKOUT")).To(BeADirectory(), "run the spec with `make test-upgrade`, which provides it")
		shop := openEmptyShop(ctx, openSiteOf(ctx, "", version(true)))
		shop.policy, shop.window = policyIn(shop.namespace), perSet
		denying(&shop.policy.Spec)
		Expect(shop.kube.Create(ctx, shop.policy)).To(Succeed())
		shop.deploy(ctx, "first", 2, nil)
		shop.deploy(ctx, "second", 2, nil)
		r := &rollout{shop: shop, leaving: make(chan string, 1), left: make(chan struct{})}
		r.startLoad()
		r.judged = shop.warmUp(ctx)

		r.judge(ctx, "with the older version", 4, 0)
		Expect(shop.cluster.Upgrade(ctx, version(false))).To(Succeed())
		r.judge(ctx, "with older sidecars alone", 4, 0)
		r.replace(ctx, "first", "third")
		r.judge(ctx, "with sidecars of both versions", 2, 2)
		Expect(shop.cluster.Upgrade(ctx, version(true))).To(Succeed())
		r.judge(ctx, "with the older controller, and sidecars of both versions", 2, 2)
		r.replace(ctx, "third", "fourth")
		r.judge(ctx, "with the older version again", 4, 0)

		offered := shop.load.Sum(r.begun, time.Now(), func(o *traffic.Outcomes) *traffic.Series { return &o.Offered })
		AddReportEntry("upgrade", fmt.Sprintf("%d requests in %s, none lost, and no window over %d", offered, time.Since(r.begun).Round(time.Second), limit))
	}, SpecTimeout(8*time.Minute))
})

// A rollout is a shop whose pods are replaced.
type rollout struct {
	*shop
	begun   time.Time     // when load began
	judged  time.Time     // the start of the first window that was not looked at
	leaving chan string   // a Deployment whose pods get no more requests
	left    chan struct{} // none is sent to them any more
}

// startLoad sends requests to all pods that are ready, but to those that leave. Kubernetes takes a
// pod that ends out of the Services before its app need end; here it is taken out before.
func (r *rollout) startLoad() {
	ctx, stop := context.WithCancel(context.Background())
	r.stopLoad, r.begun = stop, time.Now()
	r.load = traffic.NewLoad(overload)
	r.load.OnFailure = func(why error) { fmt.Fprintln(GinkgoWriter, "a request failed:", why) }
	r.load.SetTargets(r.staying(ctx, ""))
	go r.load.Run(ctx)
	go func() {
		defer GinkgoRecover()
		leaving := ""
		for ctx.Err() == nil {
			select {
			case leaving = <-r.leaving:
				r.load.SetTargets(r.staying(ctx, leaving))
				sleepUntil(ctx, time.Now().Add(settle)) // what was sent before is answered
				r.left <- struct{}{}
			case <-time.After(100 * time.Millisecond):
				r.load.SetTargets(r.staying(ctx, leaving))
			case <-ctx.Done():
			}
		}
	}()
}

// staying returns the pods that are ready and not of the Deployment.
func (r *rollout) staying(ctx context.Context, leaving string) []traffic.Target {
	all, err := r.cluster.Endpoints(ctx)
	if err != nil {
		return nil
	}
	var targets []traffic.Target
	for _, e := range all {
		if e.Namespace == r.namespace && (leaving == "" || !isOf(e.Pod, leaving)) {
			targets = append(targets, traffic.Target{Pod: e.Pod, Address: e.Proxy})
		}
	}
	return targets
}

// isOf reports whether a pod is of a Deployment, by its name.
func isOf(pod, deployment string) bool {
	return len(pod) > len(deployment) && pod[:len(deployment)+1] == deployment+"-"
}

// replace has a Deployment take the place of another.
func (r *rollout) replace(ctx context.Context, old, with string) {
	GinkgoHelper()
	r.deploy(ctx, with, 2, nil)
	r.leaving <- old
	<-r.left
	Expect(r.kube.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: old, Namespace: r.namespace}},
		client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
	r.awaitReady(ctx, 4)
}

// judge looks at all windows since it was called last, until one uses the whole limit. The
// number of sidecars of each version has to be as given.
func (r *rollout) judge(ctx context.Context, what string, older, newer int) {
	GinkgoHelper()
	By(what)
	var pods corev1.PodList
	Expect(r.kube.List(ctx, &pods, client.InNamespace(r.namespace))).To(Succeed())
	images := map[string]int{}
	for i := range pods.Items {
		for _, c := range pods.Items[i].Spec.InitContainers {
			if c.Name == inject.ContainerName && pods.Items[i].DeletionTimestamp == nil {
				images[c.Image]++
			}
		}
	}
	Expect([]int{images[olderImage], images[devcluster.SidecarImage]}).To(Equal([]int{older, newer}), "sidecars of each version")

	calm := r.nextWindow()
	for ; r.judged.Before(calm); r.judged = r.judged.Add(r.window) {
		Expect(r.admitted(ctx, r.judged)).To(BeNumerically("<=", limit), what)
	}
	full := r.awaitFull(ctx, calm, 1)
	r.judged = calm.Add(time.Duration(len(full)) * r.window)
	failed := r.load.Sum(r.begun, time.Now(), func(o *traffic.Outcomes) *traffic.Series { return &o.Failed })
	Expect(failed).To(BeZero(), "requests that were lost "+what)
	Eventually(func(g Gomega) {
		conditions := r.status(ctx, g).Conditions
		g.Expect(meta.IsStatusConditionTrue(conditions, v1alpha1.ProgrammedCondition)).To(BeTrue())
		g.Expect(meta.IsStatusConditionFalse(conditions, v1alpha1.WithinBoundCondition)).To(BeFalse())
	}, longest, 100*time.Millisecond).Should(Succeed())
}

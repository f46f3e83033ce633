//go:build fleet

package fleet

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// A change is one edit of a policy under load, and what a window may admit from
// then on.
type change struct {
	what string
	edit func(*v1alpha1.RateLimitPolicySpec)
	most int
}

func algorithm(of v1alpha1.Algorithm, burst int64) change {
	return change{
		what: string(of),
		edit: func(s *v1alpha1.RateLimitPolicySpec) {
			l := &s.Limits[0]
			l.Algorithm, l.Buckets, l.Rates[0].Burst = of, nil, nil
			if burst > 0 {
				l.Rates[0].Burst = &burst
			}
		},
		most: limit + int(burst),
	}
}

func mode(of v1alpha1.ConsistencyMode) change {
	return change{
		what: string(of),
		edit: func(s *v1alpha1.RateLimitPolicySpec) { s.Consistency = v1alpha1.Consistency{Mode: of} },
		most: limit,
	}
}

func store(of v1alpha1.Store) change {
	return change{
		what: "store " + string(of.Type),
		edit: func(s *v1alpha1.RateLimitPolicySpec) { s.Store.Store = of },
		most: limit,
	}
}

// denying makes the limit the bound of every window, also of those in which a machine
// short of processors keeps sidecars from reaching the store in time.
func denying(s *v1alpha1.RateLimitPolicySpec) { s.OnStoreUnavailable.Action = v1alpha1.DenyAction }

var _ = Describe("A policy that is changed under load", func() {
	It("admits not one request too many while it goes from algorithm to algorithm", func(ctx SpecContext) {
		shop := openShop(ctx, denying)
		const burst = 100
		shop.goThrough(ctx, []change{
			algorithm(v1alpha1.SlidingWindowAlgorithm, 0),
			algorithm(v1alpha1.TokenBucketAlgorithm, burst),
			algorithm(v1alpha1.SlidingLogAlgorithm, 0),
			algorithm(v1alpha1.FixedWindowAlgorithm, 0),
			algorithm(v1alpha1.GCRAAlgorithm, burst),
			algorithm(v1alpha1.FixedWindowAlgorithm, 0),
		})
	}, SpecTimeout(8*time.Minute))

	It("admits not one request too many while it goes from mode to mode", more, func(ctx SpecContext) {
		shop := openShop(ctx, denying)
		shop.goThrough(ctx, []change{
			mode(v1alpha1.StrictMode), mode(v1alpha1.CachedDenyMode), mode(v1alpha1.LeasedMode),
		})
	}, SpecTimeout(5*time.Minute))

	It("admits not one request too many while it goes from store to store", more, func(ctx SpecContext) {
		shop := openShop(ctx, denying)
		redis, _ := startRedis(ctx)
		postgres, _ := startPostgres(ctx, shop.namespace)
		shop.goThrough(ctx, []change{
			store(redis),
			store(postgres),
			store(v1alpha1.Store{Type: v1alpha1.ControllerStore}),
		})
	}, SpecTimeout(8*time.Minute))
})

// goThrough makes the changes one after the other, each somewhere inside a window,
// and holds every window from the first on against the most that was allowed in
// it. After each change the limit has to be served again.
func (s *shop) goThrough(ctx context.Context, changes []change) {
	GinkgoHelper()
	s.deploy(ctx, "checkout", 4, nil)
	s.startLoad(overload)
	first := s.warmUp(ctx)
	type span struct {
		from time.Time
		change
	}
	inForce := []span{{first, change{what: "at first", most: limit}}}
	for i, c := range changes {
		sleepUntil(ctx, s.nextWindow().Add(time.Duration(1+i%4)*s.window/5))
		inForce = append(inForce, span{time.Now(), c})
		s.change(ctx, c)
		By(c.what + " serves")
		s.awaitUsed(ctx, s.nextWindow().Add(s.window), 1, limit*3/4, c.most)
	}
	last := s.windowAt(time.Now().Add(-settle))
	for start := first; start.Before(last); start = start.Add(s.window) {
		most, what := 0, ""
		for i, f := range inForce {
			ended := i+1 < len(inForce) && !inForce[i+1].from.Add(s.window).After(start)
			if f.from.Before(start.Add(s.window)) && !ended && f.most > most {
				most, what = f.most, f.what
			}
		}
		n := int(s.tally.Between(start, start.Add(s.window)))
		fmt.Fprintf(GinkgoWriter, "window %s: %d of at most %d (%s)\n", start.Format("15:04:05"), n, most, what)
		Expect(n).To(BeNumerically("<=", most), "window %s under %s", start.Format("15:04:05"), what)
	}
}

// change edits the policy and returns when every sidecar enforces it on the store
// that it names.
func (s *shop) change(ctx context.Context, c change) {
	GinkgoHelper()
	Expect(kube.Get(ctx, client.ObjectKeyFromObject(s.policy), s.policy)).To(Succeed())
	base := s.policy.DeepCopy()
	c.edit(&s.policy.Spec)
	Expect(kube.Patch(ctx, s.policy, client.MergeFrom(base))).To(Succeed())
	wanted := s.policy.Spec.Store.Store
	s.awaitProgrammed(ctx, longest)
	Eventually(func(g Gomega) {
		store := s.status(ctx, g).Store
		g.Expect(store).To(HaveValue(And(HaveField("Phase", v1alpha1.StoreServing), HaveField("Active", wanted))), "%v", store)
	}, longest, 50*time.Millisecond).Should(Succeed())
}

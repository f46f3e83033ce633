package metrics

import (
	"context"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// shared is a cache that copies nothing.
type shared struct {
	client.Reader
	policies []v1alpha1.RateLimitPolicy
}

func (s shared) List(_ context.Context, to client.ObjectList, _ ...client.ListOption) error {
	if list, ok := to.(*v1alpha1.RateLimitPolicyList); ok {
		list.Items = s.policies
	}
	return nil
}

// TestASeriesTakesFewAllocations: a scrape of 10,000 policies has 100,000 series and more,
// and what it leaves behind the collector of garbage has to find.
func TestASeriesTakesFewAllocations(t *testing.T) {
	gather := func(policies int) (series int, allocations float64) {
		var s shared
		for i := range policies {
			s.policies = append(s.policies, *measured(fmt.Sprintf("policy-%05d", i)))
		}
		r := prometheus.NewRegistry()
		r.MustRegister(&Objects{Cache: s, Leads: yes})
		series, err := testutil.GatherAndCount(r)
		if err != nil {
			t.Fatal(err)
		}
		return series, testing.AllocsPerRun(3, func() { _, _ = r.Gather() })
	}
	few, fewAllocations := gather(100)
	many, manyAllocations := gather(1100)
	if each := (manyAllocations - fewAllocations) / float64(many-few); each > 4 {
		t.Errorf("a series takes %.1f allocations", each)
	}
}

package coordinator

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/policy"
)

// A dividedPool is what the shares of a pool follow from.
type dividedPool struct {
	name   types.NamespacedName
	key    pool.Key
	params pool.Params
	here   bool // this controller divides it
	policy *policy.Pool
}

func newDividedPool(cluster string, p *policy.Pool) *dividedPool {
	return &dividedPool{
		name:   types.NamespacedName{Namespace: p.Namespace, Name: p.Name},
		key:    pool.Key{Cluster: cluster, Namespace: p.Namespace, Name: p.Name},
		params: p.Params(),
		here:   p.Coordinator.Type == policy.ControllerStore,
		policy: p,
	}
}

// poolGeneration returns that of the pool in c, which may be nil; 0 when it is not there.
func (c *config) poolGeneration(name types.NamespacedName) int64 {
	if !c.hasPool(name) {
		return 0
	}
	return c.pool.policy.Generation
}

// hasPool reports whether c, which may be nil, holds the pool.
func (c *config) hasPool(name types.NamespacedName) bool {
	return c != nil && c.pool != nil && c.pool.name == name
}

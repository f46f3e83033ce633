package pools

import "github.com/weir-dev/weir/pkg/policy"

// Apply puts the pool of the set in force, if it can be kept.
func (k *Enforcer) Apply(set *policy.Set) error {
	c, err := k.Prepare(set)
	if err == nil {
		c.Commit()
	}
	return err
}

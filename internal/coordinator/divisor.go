package coordinator

import (
	"math/big"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/pkg/limiter"
)

// divisor returns the number that is sent to n holders of the policy, so that their shares and
// those that are in use elsewhere are together not more than the limit; 0 for nothing. away are
// the numbers, by pod UID, that were sent to holders which are connected and have not promised.
func (r *returns) divisor(name types.NamespacedName, n int64, away map[string]int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	free := big.NewRat(1, 1)
	brought := r.broughtBack(name)
	if brought != nil && brought.Cmp(free) < 0 {
		free = brought
	}
	for uid, of := range away {
		_, lost := r.lost[uid]
		if _, again := r.brought[uid]; of > 0 && !lost && (again || brought == nil) {
			free.Sub(free, big.NewRat(1, of))
		}
	}
	for _, l := range r.lost {
		if of := l.told[name]; of > 0 {
			free.Sub(free, big.NewRat(1, of))
		}
	}
	if free.Sign() <= 0 || n == 0 {
		return 0
	}
	// ceil(n / free)
	num, den := new(big.Int).Mul(big.NewInt(n), free.Denom()), free.Num()
	quotient, rest := num.QuoRem(num, den, new(big.Int))
	if rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	if !quotient.IsInt64() {
		return 0
	}
	return quotient.Int64()
}

// broughtBack returns which part of the limit holders of the policy have brought back, nil
// when nobody is absent who may have another part. The lock is held.
func (r *returns) broughtBack(name types.NamespacedName) *big.Rat {
	c := r.policies[name]
	switch {
	case r.first, c == nil && len(r.awaited[name.Namespace]) == 0, c != nil && c.Until != limiter.MaxInstant:
		return nil
	}
	brought := new(big.Rat)
	if c != nil {
		for _, s := range c.Back {
			brought.Add(brought, big.NewRat(int64(len(s.At)), s.Of))
		}
	}
	return brought
}

package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/weir-dev/weir/pkg/store"
)

// resetAtOnce is how many counters one statement sets back at most.
const resetAtOnce = 500

// Reset sets all counters of a limit back, or the one of hash, and returns how many there
// were. Each begins with a full limit, by the server's clock; units in hand stay good, and
// what the memory had forgotten of the open windows counts no more. Before it returns an
// error it may have set some of them back. A limit with many counters takes several round
// trips, each as long as a call of Apply; the error is that of Apply.
func (s *Store) Reset(ctx context.Context, scope store.Scope, hash *string) (int, error) {
	// The byte after a slash ends the keys of a scope, and no key has one below a space.
	name := scope.String()
	low, high := name+"/", name+"0"
	if hash != nil {
		name = store.Key{Scope: scope, Hash: *hash}.String()
		low, high = name, name+"\x01"
	}
	n := 0
	for {
		got, err := run[[]string](ctx, s, s.program.Program, s.timeout, s.program.reset, name, low, high, resetAtOnce)
		if err != nil {
			return n, err
		}
		if len(got) != 2 {
			return n, fmt.Errorf("%s: weir.set_back answered %d texts, want 2", s.name, len(got))
		}
		count, err := strconv.Atoi(got[0])
		n += count
		if err != nil || count < resetAtOnce {
			return n, err
		}
		low = got[1] + "\x01"
	}
}

package coordinator

import (
	"maps"
	"slices"
	"sync"
	"weak"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/policy/revision"
)

// A step is what differs between the config that a session is served by and the next. It is made once
// for all sessions that take it.
type step struct {
	names    []types.NamespacedName                  // of the policies that only one of the two has, or has otherwise
	policies map[types.NamespacedName]*policy.Policy // those that the next has
	edited   bool                                    // it is known whether there is an edit
	edit     *fleetpb.ToHolder                       // makes the next of the other; nil: the whole is about as short
}

// maxSteps bounds how many steps a config remembers. Sessions take few: most are served by the same.
const maxSteps = 8

// steps are those that lead to one config. They do not keep the configs that they begin at.
type steps struct {
	mu    sync.Mutex
	known map[weak.Pointer[config]]*step // by where they begin
}

// from returns the step to c from another config, nil for none.
func (c *config) from(before *config) *step {
	switch before {
	case c:
		return &step{}
	case nil:
		return &step{names: slices.Collect(maps.Keys(c.policies)), policies: c.policies}
	}
	c.steps.mu.Lock()
	defer c.steps.mu.Unlock()
	return c.step(before)
}

// step returns that from another config. The lock of the steps is held.
func (c *config) step(before *config) *step {
	at := weak.Make(before)
	if known := c.steps.known[at]; known != nil {
		return known
	}
	s := &step{names: differing(before, c), policies: map[types.NamespacedName]*policy.Policy{}}
	for _, name := range s.names {
		if p := c.policies[name]; p != nil {
			s.policies[name] = p
		}
	}
	if c.steps.known == nil || len(c.steps.known) == maxSteps {
		c.steps.known = map[weak.Pointer[config]]*step{}
	}
	c.steps.known[at] = s
	return s
}

// editOf returns what makes c of another config, nil when it is not much shorter than c.
func (c *config) editOf(before *config) *fleetpb.ToHolder {
	if before == nil || before == c {
		return nil
	}
	c.steps.mu.Lock()
	defer c.steps.mu.Unlock()
	s := c.step(before)
	if !s.edited {
		s.edit, s.edited = newEdit(before, c), true
	}
	return s.edit
}

// newEdit returns what makes a config of another, nil when it is not much shorter than the whole.
func newEdit(before, next *config) *fleetpb.ToHolder {
	from, to := before.content(), next.content()
	if from == nil || to == nil {
		return nil
	}
	e, err := revision.Between(from, to)
	if err != nil {
		return nil
	}
	whole := next.message.GetConfig()
	out := &fleetpb.Config{Version: next.version, Base: before.version, Snapshot: e.Data, Digest: e.Digest}
	for _, n := range e.Removed {
		out.Removed = append(out.Removed, &fleetpb.Config_Entry{Kind: string(n.Kind), Namespace: n.Namespace, Name: n.Name})
	}
	sameSecret := func(a, b *fleetpb.Secret) bool { return proto.Equal(a, b) }
	if !slices.EqualFunc(before.message.GetConfig().GetSecrets(), whole.GetSecrets(), sameSecret) {
		out.Secrets, out.SecretsRenewed = whole.GetSecrets(), true
	}
	if 2*proto.Size(out) > proto.Size(whole) {
		return nil
	}
	return &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Config{Config: out}}
}

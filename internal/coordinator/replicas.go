package coordinator

import (
	"context"
	"slices"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
)

// replicasInterval is how often a leader looks for other replicas.
const replicasInterval = time.Second

// watchReplicas keeps the sidecars informed where the replicas are that may lead next, so
// that they wait there.
func (t *term) watchReplicas(ctx context.Context) {
	if t.Replicas == nil {
		return
	}
	tick := time.NewTicker(replicasInterval)
	defer tick.Stop()
	for {
		addresses, err := t.Replicas(ctx)
		if err == nil {
			t.publishReplicas(addresses)
		} else if ctx.Err() == nil {
			t.log.Error(err, "cannot look for other replicas; sidecars wait at those that are known")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// publishReplicas sends the addresses to all sidecars, if they changed.
func (t *term) publishReplicas(addresses []string) {
	addresses = slices.Sorted(slices.Values(addresses))
	if slices.Equal(t.replicas.Load().GetReplicas().GetAddresses(), addresses) {
		return
	}
	m := &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Replicas{Replicas: &fleetpb.Replicas{Addresses: addresses}}}
	t.replicas.Store(m) // before the sessions are listed: those that come later are sent it by enter
	for _, s := range t.sessions.all() {
		s.push(m)
	}
}

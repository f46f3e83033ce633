package coordinator

import (
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/policy"
)

// sendClocks sends the holder what is known of the clock of each store that it asks by a
// configuration, once for each store. A holder that has asked a store knows what its clock
// showed; one that has just started does not. A store that lost its memory while its clock
// was set back would serve such a holder a window again. The instants are of the
// controller's own looks at the stores, never of what other holders say, so no pod can hold
// up another. s.reporting is held.
func (t *term) sendClocks(s *session, by *config) {
	if t.Reached == nil {
		return
	}
	var out []*fleetpb.Clocks_Clock
	for i := range by.snapshot.Policies {
		of := by.snapshot.Policies[i].Store
		if of.Type == policy.ControllerStore {
			continue
		}
		server := of.Server()
		if _, known := s.clocks[server]; known {
			continue
		}
		if known := t.Reached(of); known.Now > 0 {
			s.clocks[server] = struct{}{}
			out = append(out, &fleetpb.Clocks_Clock{
				Server: server, NowMicros: int64(known.Now), DoubtfulMicros: int64(known.Doubtful),
			})
		}
	}
	if len(out) > 0 {
		s.push(&fleetpb.ToHolder{Message: &fleetpb.ToHolder_Clocks{Clocks: &fleetpb.Clocks{Clocks: out}}})
	}
}

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

var (
	poolKey    = pool.Key{Cluster: "c", Namespace: "shop", Name: "checkout"}
	poolParams = pool.Params{Min: 1, Max: 9, Initial: 4, TTL: 2 * limiter.Second, Quarantine: 2 * limiter.Second, Generation: 3}
	command    = pool.Command{Op: pool.Beat, Holder: "uid/nonce", Seq: 5, Term: 2, Applied: 7, Held: 4, InFlight: 3, Peak: 6, Limit: 8}
)

type beaten struct {
	grant pool.Grant
	err   error
}

// beat beats in the background, for as long as a second.
func beat(t *testing.T, c *fleet.Client, cmd pool.Command) <-chan beaten {
	t.Helper()
	out := make(chan beaten, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	go func() {
		defer cancel()
		g, err := c.Coordinator().Apply(ctx, poolKey, poolParams, cmd)
		out <- beaten{g, err}
	}()
	return out
}

func heartbeatOf(m *fleetpb.FromHolder) *fleetpb.Heartbeat { return m.GetHeartbeat() }

func TestBeatsAreAnsweredByID(t *testing.T) {
	c := newController(t)
	client, _, _ := start(t, c)
	s, _ := c.welcome(t, 7)
	connected(t, client)
	first := beat(t, client, command)
	asked := expect(t, s, heartbeatOf)
	want := &fleetpb.Heartbeat{
		Id: asked.GetId(), Namespace: "shop", Pool: "checkout", Generation: 3, Op: int32(pool.Beat),
		Seq: 5, Term: 2, Applied: 7, Held: 4, InFlight: 3, Peak: 6, Limit: 8,
	}
	if diff := cmp.Diff(want, asked, protocmp.Transform()); diff != "" {
		t.Errorf("the beat differs (-want +got):\n%s", diff)
	}
	later := command
	later.Seq = 6
	second := beat(t, client, later)
	for _, share := range []*fleetpb.Share{ // in the wrong order
		{Id: expect(t, s, heartbeatOf).GetId(), Seq: 6, Term: 2, Generation: 8, Share: 2},
		{
			Id: asked.GetId(), Seq: 5, Term: 2, Generation: 7, Share: 4, TtlMicros: 2_000_000, Limit: 8, Holders: 2,
			Granted: 6, InFlight: 5, Occupied: 7, Bound: 9, QuarantinedMicros: 10,
		},
	} {
		s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Share{Share: share}})
	}
	if got := <-second; got.err != nil || got.grant.Share != 2 || got.grant.Seq != 6 {
		t.Errorf("the second beat got %+v", got)
	}
	grant := pool.Grant{
		Seq: 5, Term: 2, Generation: 7, Share: 4, TTL: 2 * limiter.Second, Limit: 8, Holders: 2,
		Granted: 6, InFlight: 5, Occupied: 7, Bound: 9, Quarantined: 10,
	}
	if got := <-first; got.err != nil || got.grant != grant {
		t.Errorf("the first beat got %+v, want %+v", got, grant)
	}
}

func TestWhyABeatBringsNoShare(t *testing.T) {
	for name, tc := range map[string]struct {
		answer  func(t *testing.T, s *session, id uint64)
		outage  bool
		message string
	}{
		"the controller cannot say now": {func(t *testing.T, s *session, id uint64) {
			s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Share{Share: &fleetpb.Share{Id: id, Error: "not yet"}}})
		}, true, "not yet"},
		"nobody may send it": {func(t *testing.T, s *session, id uint64) {
			s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Share{Share: &fleetpb.Share{Id: id, Error: "seq 0", Defect: true}}})
		}, false, "seq 0"},
		"the stream ends":    {func(_ *testing.T, s *session, _ uint64) { s.end <- errors.New("bye") }, true, "ended"},
		"there is no answer": {func(*testing.T, *session, uint64) {}, true, "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newController(t)
			client, _, _ := start(t, c)
			s, _ := c.welcome(t, 7)
			connected(t, client)
			got := beat(t, client, command)
			tc.answer(t, s, expect(t, s, heartbeatOf).GetId())
			err := (<-got).err
			if _, outage := errors.AsType[*store.UnavailableError](err); outage != tc.outage || !strings.Contains(fmt.Sprint(err), tc.message) {
				t.Errorf("got error %v", err)
			}
		})
	}
}

// TestABeatWaitsForAStream: it is sent as soon as there is one. A holder that leaves
// does not wait.
func TestABeatWaitsForAStream(t *testing.T) {
	c := newController(t)
	client, _, _ := start(t, c)
	early := beat(t, client, command)
	leave := command
	leave.Op = pool.Leave
	if err := (<-beat(t, client, leave)).err; err == nil {
		t.Error("left without a stream")
	}
	s, _ := c.welcome(t, 7)
	id := expect(t, s, heartbeatOf).GetId()
	s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Share{Share: &fleetpb.Share{Id: id, Seq: 5, Share: 4}}})
	if got := <-early; got.err != nil || got.grant.Share != 4 {
		t.Errorf("got %+v", got)
	}
}

func TestABeatWithoutAStreamSaysWhy(t *testing.T) {
	c := newController(t)
	cfg, _ := c.config(t)
	client, err := fleet.New(cfg) // that nobody runs
	if err != nil {
		t.Fatal(err)
	}
	err = (<-beat(t, client, command)).err
	wantUnavailable(t, err)
	if !strings.Contains(fmt.Sprint(err), "not connected yet") {
		t.Errorf("got error %v", err)
	}
}

// TestSharesPassAHandlerThatIsBusy has more to do for it than was ever asked of a
// sidecar at once.
func TestSharesPassAHandlerThatIsBusy(t *testing.T) {
	c := newController(t)
	client, h, _ := start(t, c)
	s, _ := c.welcome(t, 7)
	connected(t, client)
	busy := make(chan struct{})
	defer close(busy)
	h.mu.Lock()
	h.busy = busy
	h.mu.Unlock()
	for range 1500 {
		s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Config{Config: &fleetpb.Config{Version: policy.Version(nil)}}})
	}
	got := beat(t, client, command)
	id := expect(t, s, heartbeatOf).GetId()
	s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Share{Share: &fleetpb.Share{Id: id, Seq: 5, Share: 4}}})
	if got := <-got; got.err != nil || got.grant.Share != 4 {
		t.Errorf("got %+v", got)
	}
}

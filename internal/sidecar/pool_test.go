package sidecar

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/admin"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// poolSnapshot encodes a pool of n slots.
func poolSnapshot(t *testing.T, n int64) (data []byte, version, packed string) {
	t.Helper()
	data, version, err := policy.Encode(policy.Snapshot{Cluster: "test", Pool: &policy.Pool{
		Namespace: "shop", Name: "checkout", Generation: 4, Mode: policy.Enforce,
		Coordinator: policy.Store{Type: policy.ControllerStore},
		Limit:       policy.LimitRange{Min: n, Initial: n, Max: n},
		Algorithm:   policy.LimitAlgorithm{Type: policy.FixedLimit},
		Aggregate:   policy.Median, Allocation: policy.EqualSplit, Handoff: policy.Acknowledged,
		Heartbeat: policy.Heartbeat{
			Interval: limiter.Second, LeaseTTL: 2 * limiter.Second, Eager: true, MinInterval: limiter.Second / 50,
		},
		SelfFence:           policy.SelfFence{Margin: limiter.Second / 2, OnFenced: policy.Drain},
		OnCoordinatorOutage: policy.FailClosed,
		StatusCode:          http.StatusServiceUnavailable,
	}})
	if err != nil {
		t.Fatal(err)
	}
	packed, err = policy.Pack(data)
	if err != nil {
		t.Fatal(err)
	}
	return data, version, packed
}

// wholly gives the one holder of a pool all of it.
func wholly(limit int64) func(*fleetpb.Heartbeat) *fleetpb.Share {
	return func(h *fleetpb.Heartbeat) *fleetpb.Share {
		return &fleetpb.Share{
			Id: h.GetId(), Seq: h.GetSeq(), Term: 1, Generation: 1, Share: limit, TtlMicros: 2_000_000,
			Limit: limit, Holders: 1, Granted: limit, InFlight: h.GetInFlight(), Occupied: limit, Bound: limit,
		}
	}
}

func (c *controller) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// TestAPoolOfTheSnapshotHoldsAtOnce starts a pod whose controller does not answer: it is
// ready, and refuses until it has a share.
func TestAPoolOfTheSnapshotHoldsAtOnce(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	c := serveController(t, s)
	c.config.Snapshot, c.config.Version, s.env["WEIR_SNAPSHOT"] = poolSnapshot(t, 1)
	begun := time.Now()
	s.start(t)
	if took := time.Since(begun); took > readyTime {
		t.Errorf("ready after %s", took)
	}
	if status, body, err := get(t, s.url(15006, "/")); err != nil || status != http.StatusServiceUnavailable || !strings.Contains(body, "no part of its limit yet") {
		t.Errorf("got %d, %q, %v", status, body, err)
	}
	if _, kept, err := get(t, s.url(15010, admin.RefusalsPath)); err != nil || !strings.Contains(kept, "no part of its limit yet") {
		t.Errorf("%s has %q, %v", admin.RefusalsPath, kept, err)
	}
	c.change(func() { c.divide = wholly(1) })
	eventually(t, "no request passes", func() bool {
		status, _, err := get(t, s.url(15006, "/"))
		return err == nil && status == http.StatusOK
	})
}

// TestAShadowedPodNeedsNoSlot although its pool enforces.
func TestAShadowedPodNeedsNoSlot(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	serveController(t, s)
	_, _, s.env["WEIR_SNAPSHOT"] = poolSnapshot(t, 1)
	s.env["WEIR_MODE"] = "shadow"
	s.start(t)
	if status, body, err := get(t, s.url(15006, "/")); err != nil || status != http.StatusOK {
		t.Errorf("got %d, %q, %v", status, body, err)
	}
}

// TestTheLifeOfAShare follows one from the first request to the end of the last.
func TestTheLifeOfAShare(t *testing.T) {
	release, entered := make(chan struct{}), make(chan struct{}, 1)
	s := newSandbox(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-release
		hello(w, r)
	}))
	c := serveController(t, s)
	c.config.Snapshot, c.config.Version, _ = poolSnapshot(t, 1)
	c.divide = wholly(1)
	s.start(t)
	eventually(t, "there is no share", func() bool { return shownPool(t, s).Share == 1 })
	slow := make(chan string, 1)
	go func() {
		_, body, _ := get(t, s.url(15006, "/"))
		slow <- body
	}()
	<-entered
	if status, body, err := get(t, s.url(15006, "/")); err != nil || status != http.StatusServiceUnavailable || !strings.Contains(body, "is full") {
		t.Errorf("got %d, %q, %v", status, body, err)
	}
	want := shown{Name: "checkout", Limit: 1, Holders: 1, Share: 1, Ceiling: 1, Inferred: 1, InFlight: 1, Admitted: 1, Refused: 1}
	if got := shownPool(t, s); got != want {
		t.Errorf("/debug/config shows %+v, want %+v", got, want)
	}
	_, metrics, _ := get(t, s.url(15020, "/metrics"))
	for _, want := range []string{
		`weir_pool_in_flight{namespace="shop",pool="checkout"} 1`,
		`weir_pool_requests_total{decision="refused",namespace="shop",partition="",pool="checkout",reason="full"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	eventually(t, "the pool is not reported", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.pool.GetInFlight() == 1 && c.pool.GetRefusedTotal() == 1 && c.pool.GetGeneration() == 4
	})

	s.stop()
	eventually(t, "it accepts requests while it stops", func() bool {
		_, _, err := get(t, s.url(15006, "/"))
		return err != nil
	})
	left := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.beats[len(c.beats)-1].GetOp() == int32(pool.Leave)
	}
	if left() {
		t.Error("the share was given up with a request in flight")
	}
	close(release)
	if body := <-slow; body != "hello" {
		t.Errorf("the request in flight got %q", body)
	}
	s.wait(t)
	if !left() {
		t.Error("the share was not given up")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.order); c.order[n-1] != "*fleetpb.FromHolder_Leave" || c.pool.GetInFlight() != 0 {
		t.Errorf("the last message is %s, the last report %v", c.order[n-1], c.pool)
	}
}

// shown is the part of a pool in /debug/config that does not depend on time.
type shown struct {
	Name                                        string
	Limit, Holders, Share, Ceiling, Inferred    int64
	InFlight, Queued, Admitted, Refused, Fences int64
	Fenced, Local, Shadow                       bool
	CoordinatorError                            string
}

func shownPool(t *testing.T, s *sandbox) shown {
	t.Helper()
	var got struct{ Pools []shown }
	_, body, err := get(t, s.url(15010, "/debug/config"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Pools) == 0 {
		return shown{}
	}
	return got.Pools[0]
}

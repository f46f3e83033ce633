package storeprobe

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/storetest/redistest"
)

// A fakeServer counts what it is asked.
type fakeServer struct {
	backend.Backend
	probed, closed *int
	err            error
}

func (s fakeServer) Probe(context.Context) (store.Guarantee, error) {
	*s.probed++
	return store.Guarantee{Grade: store.BestEffort, Reason: "it evicts"}, s.err
}

func (s fakeServer) Close() error {
	*s.closed++
	return nil
}

func TestAnswersAreRememberedForAMoment(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	outage := errors.New("no route to host")
	up, down := policy.Store{Type: policy.RedisStore, Address: "up:6379"}, policy.Store{Type: policy.RedisStore, Address: "down:6379"}
	asked, closed := map[policy.Store]*int{up: new(int), down: new(int)}, 0
	p := newProber(clock, func(of policy.Store, _ map[string][]byte) (backend.Backend, error) {
		s := fakeServer{probed: asked[of], closed: &closed}
		if of == down {
			s.err = outage
		}
		return s, nil
	})
	probe := func(of policy.Store, wantErr error) {
		t.Helper()
		got, err := p.Probe(t.Context(), of, nil)
		if !errors.Is(err, wantErr) {
			t.Errorf("Probe(%s): error %v, want %v", of.Address, err, wantErr)
		}
		want := v1alpha1.Guarantee{Grade: v1alpha1.BestEffortGuarantee, Reason: "it evicts"}
		if wantErr != nil {
			want = v1alpha1.Guarantee{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Probe(%s) (-want +got):\n%s", of.Address, diff)
		}
	}
	for range 3 {
		probe(up, nil)
		probe(down, outage)
	}
	if *asked[up] != 1 || *asked[down] != 1 {
		t.Errorf("asked %d and %d times while the answers stand, want once", *asked[up], *asked[down])
	}
	clock.SetTime(clock.Now().Add(freshFor))
	probe(up, nil)
	if *asked[up] != 2 {
		t.Errorf("asked %d times after the answer was stale, want 2", *asked[up])
	}
	if len(p.answers) != 1 {
		t.Errorf("%d answers are kept, want only the fresh one", len(p.answers))
	}
	if closed != 3 {
		t.Errorf("%d connections closed, want 3", closed)
	}
}

func TestARealServer(t *testing.T) {
	of := policy.Store{Type: policy.RedisStore, Address: redistest.Start(t).Addr}
	p := New(backend.Open)
	got, err := p.Probe(t.Context(), of, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.Guarantee{Grade: v1alpha1.HardGuarantee, Reason: hardReason}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Probe (-want +got):\n%s", diff)
	}
	now, err := p.Clock(t.Context(), of, nil)
	if off := limiter.Instant(time.Now().UnixMicro()).Sub(now); err != nil || off < 0 || off > limiter.Second {
		t.Errorf("the clock is %dµs behind that of this machine, which it is: %v", off, err)
	}
}

func TestNoServer(t *testing.T) {
	of := policy.Store{Type: policy.RedisStore, Address: filepath.Join(t.TempDir(), "nobody.sock")}
	if _, err := New(backend.Open).Probe(t.Context(), of, nil); err == nil {
		t.Error("a server that is not there gave a guarantee")
	}
	if now, err := New(backend.Open).Clock(t.Context(), of, nil); err == nil {
		t.Errorf("a server that is not there gave the time %d", now)
	}
}

package coordinator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func TestFence(t *testing.T) {
	const lasts = 10 * time.Second
	mine, nobody := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}, resourcelock.LeaderElectionRecord{}
	tests := map[string]struct {
		run  func(ctx context.Context, f *Fence, l *lock)
		want bool
	}{
		"never taken": {run: func(context.Context, *Fence, *lock) {}},
		"just taken":  {run: func(ctx context.Context, f *Fence, _ *lock) { _ = f.Create(ctx, mine) }, want: true},
		"renewed in time": {run: func(ctx context.Context, f *Fence, _ *lock) {
			_ = f.Create(ctx, mine)
			time.Sleep(lasts - 1)
			_ = f.Update(ctx, mine)
			time.Sleep(lasts - 1)
		}, want: true},
		"not renewed": {run: func(ctx context.Context, f *Fence, _ *lock) {
			_ = f.Create(ctx, mine)
			time.Sleep(lasts)
		}},
		"renewed in vain": {run: func(ctx context.Context, f *Fence, l *lock) {
			_ = f.Create(ctx, mine)
			time.Sleep(lasts - 1)
			l.fails = errors.New("connection refused")
			_ = f.Update(ctx, mine)
			time.Sleep(1)
		}},
		"counted from before the request": {run: func(ctx context.Context, f *Fence, l *lock) {
			l.takes = lasts
			_ = f.Create(ctx, mine)
		}},
		"released": {run: func(ctx context.Context, f *Fence, _ *lock) {
			_ = f.Create(ctx, mine)
			_ = f.Update(ctx, nobody)
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &lock{}
				f := NewFence(l, lasts)
				tc.run(t.Context(), f, l)
				if got := f.Held(); got != tc.want {
					t.Errorf("held = %v, want %v", got, tc.want)
				}
			})
		})
	}
}

// lock is a lock that takes and fails as it is told.
type lock struct {
	resourcelock.Interface
	takes time.Duration
	fails error
}

func (l *lock) Identity() string { return "me" }

func (l *lock) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	time.Sleep(l.takes)
	return l.fails
}

func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Create(ctx, r)
}

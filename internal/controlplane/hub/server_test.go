package hub

import (
	"context"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// TestStopWaitsForCalls ends the server while a call is under way: it is answered.
func TestStopWaitsForCalls(t *testing.T) {
	w := newWorld(t).start(t)
	p, _ := w.budgets.Budget(budgetID)
	b := w.open(t, w.secret(t, "b"))
	slow := &slowCoordinator{Coordinator: w.coordinator.Coordinator, entered: make(chan struct{}), proceed: make(chan struct{})}
	w.coordinator.Coordinator = slow
	answered := make(chan error, 1)
	go func() {
		_, err := b.Apply(t.Context(), budgetID, p, lease("b", 1, 5))
		answered <- err
	}()
	<-slow.entered
	stopped := make(chan struct{})
	go func() { w.stop(); close(stopped) }()
	time.AfterFunc(100*time.Millisecond, func() { close(slow.proceed) })
	<-stopped
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

type slowCoordinator struct {
	Coordinator
	entered, proceed chan struct{}
}

func (s *slowCoordinator) Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	close(s.entered)
	<-s.proceed
	return s.Coordinator.Apply(ctx, id, p, c)
}

package federation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// A vault is an escrow as the engine works it.
type vault struct {
	Escrow
	id     string // of the budget's windows of one length: numbers of others are not comparable
	name   string // of this process, for what it reports
	shared bool
	clock  *monotonic.Clock
	seen   view // guarded by Region.mu
}

// A view is what an escrow answered last.
type view struct {
	at       limiter.Instant // by the escrow's clock
	epoch    ledger.Epoch    // of the last window that was open
	deadline int64           // from which on nothing of that window may be handed on
	// remaining and taken are units of that window.
	remaining, taken int64
}

func newVault(e Escrow, cfg *Config) *vault {
	v := &vault{Escrow: e, shared: e != nil, name: rand.Text(), clock: cfg.Clock, seen: view{deadline: past}}
	v.id = fmt.Sprintf("%s@%d", cfg.ID, cfg.Params.Window)
	if !v.shared {
		v.Escrow = newOwn(cfg.Clock)
	}
	return v
}

// An answer is what the escrow answered, and the instant up to which it holds.
type answer struct {
	escrow.Result
	deadline int64
}

// ask applies a command to the escrow. A caller that gives up learns its own error and
// nothing of the escrow.
func (v *vault) ask(ctx context.Context, timeout time.Duration, c escrow.Command) (answer, error) {
	call, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if c.Op == escrow.Ask || c.Op == escrow.Release {
		// For an escrow that has none. One that lost its memory must not take a name again
		// under which it was granted units before: it would hear of them once more.
		c.Holder = rand.Text()
	}
	sent := v.clock.Now()
	r, err := v.Apply(call, v.id, c)
	if err != nil {
		return answer{}, fmt.Errorf("escrow: %w", err)
	}
	return answer{r, account.DeadlineOf(sent, r.ExpiresIn)}, nil
}

// see takes note of an answer. The numbers of two that crossed on the way differ; those
// of the later one are newer.
func (w *view) see(a answer) {
	switch {
	case a.Now < w.at && w.at.Sub(a.Now) < limiter.Second: // otherwise its clock was set back
		return
	case a.Epoch.Index == 0:
		w.at, w.deadline, w.remaining = a.Now, past, 0
		return
	case a.Epoch.Index != w.epoch.Index:
		w.deadline = past
	}
	w.at, w.epoch, w.remaining, w.taken = a.Now, a.Epoch, a.Remaining, a.Taken
	w.deadline = max(w.deadline, a.deadline)
}

// open reports whether the window is.
func (w *view) open(now int64) bool { return now < w.deadline }

// away reports whether an error says that a store or coordinator could not be reached.
func away(err error) bool {
	_, ok := errors.AsType[*store.UnavailableError](err)
	return ok
}

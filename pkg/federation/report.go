package federation

import (
	"context"

	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// Report sends the coordinator what the member counted in windows that are over, at
// most ledger.MaxClosed. The error is that of Coordinator.Apply.
func (r *Region) Report(ctx context.Context, usage []ledger.Usage) error {
	r.mu.Lock()
	c := ledger.Command{
		Op: ledger.Report, Member: r.config.Member, Holder: r.main.name,
		Slice: r.link.promised, Usage: usage,
	}
	r.mu.Unlock()
	_, err := r.apply(ctx, c)
	return err
}

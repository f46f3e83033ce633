package coordinator

import (
	"context"

	"github.com/weir-dev/weir/pkg/store/memory"
)

// end records what the successor needs. When that fails, the successor finds what
// it would after a crash.
func (t *term) end() {
	h := Handover{Term: t.number, Stopped: t.clock.Now()}
	var err error
	if h.Pools, err = t.pools.Export(maxConfigMap); err != nil { // first: they are small
		t.log.Error(err, "the pools are not handed over; until their shares expired, holders only keep what they use")
	}
	var left []memory.Forgotten
	if h.Returns, err = t.returns.export(h.Stopped); err != nil {
		t.log.Error(err, "it is not handed over who was absent")
	}
	if h.Ledger, left, err = t.store.Export(maxHandover - len(h.Pools) - len(h.Returns)); err != nil {
		t.log.Error(err, "the ledger is not handed over; open windows grant nothing more")
	}
	for _, f := range left {
		t.log.Info("a policy has too many keys to be handed over; its open windows grant nothing more", "policy", f.Namespace+"/"+f.Policy, "keys", f.Keys)
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if err := t.Terms.End(ctx, h); err != nil {
		t.log.Error(err, "the end of the term is not recorded; the next leader begins as after a crash")
		return
	}
	t.log.Info("handed over", "stopped", h.Stopped, "bytes", len(h.Pools)+len(h.Ledger))
}

// reportForgotten logs and counts the policies that could not be handed over to this term.
func (t *term) reportForgotten() {
	for _, f := range t.store.Forgotten() {
		t.log.Info("a policy had too many keys to be handed over; its windows that are open grant nothing more",
			"policy", f.Namespace+"/"+f.Policy, "keys", f.Keys, "began before", f.Since)
		t.metrics.forgotten.WithLabelValues(f.Namespace, f.Policy).Set(float64(f.Keys))
	}
}

// clear deletes what was handed over to this term.
func (t *term) clear(ctx context.Context) {
	if err := t.Terms.Clear(ctx, t.number); err != nil && ctx.Err() == nil {
		t.log.Error(err, "what was handed over is not deleted; the next leader tries again")
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/internal/testing/devcluster/link"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A result is what a run showed.
type result struct {
	run
	admitted int64 // in the windows that count
	over     int64 // Δ: the most that a window admitted beyond the limit, all windows
	could    int64 // of values: what could be admitted in the windows that count
	commands int64 // to the coordinator, of all regions, all windows
	waits    []time.Duration
}

// used is the part of the offered budget that was admitted.
func (r *result) used() float64 { return float64(r.admitted) / float64(budgetLimit*r.Windows) }

// wait returns a quantile of how long a decision took.
func (r *result) wait(q float64) time.Duration {
	if len(r.waits) == 0 {
		return 0
	}
	return r.waits[min(len(r.waits)-1, int(q*float64(len(r.waits))))]
}

// measure runs three regions, each a process of its own.
func (e *evaluation) measure(ctx context.Context, r run, budget string) (result, error) {
	network := e.network
	links := make([]*link.Link, regions)
	for i := range links {
		l, err := network.link(i, e.address(r.Kind))
		if err != nil {
			return result{}, err
		}
		defer l.Close()
		l.SetDelay(r.Latency / 2)
		links[i] = l
	}
	begin := time.Now().Add(2 * time.Second).Truncate(r.Window).Add(r.Window)
	reports := make([]report, regions)
	all, ctx := errgroup.WithContext(ctx)
	for i := range regions {
		o := order{
			Budget: budget, Keyed: r.Keyed, Member: memberName(i), Params: r.params(), Batch: r.Batch,
			Way:     way{Kind: r.Kind, Address: links[i].Address(), Secret: e.secret(r.Kind, i)},
			Offered: r.offered(i), Begin: begin, Windows: warmUp + r.Windows,
		}
		if o.Offered == 0 {
			continue
		}
		all.Go(func() (err error) {
			reports[i], err = network.play(ctx, i, o)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return result{}, err
	}
	return r.sum(reports, begin), nil
}

// params are what the budget is divided by.
func (r *run) params() ledger.Params {
	p := ledger.Params{Limit: budgetLimit, Window: limiter.Micros(r.Window.Microseconds())}
	for i := range regions {
		p.Members = append(p.Members, ledger.Member{Name: memberName(i), Weight: 1, Borrowing: -1})
	}
	if r.Kind == memoryKind || r.Kind == kubernetesKind {
		p.Members = append([]ledger.Member{{Name: hubMember, Weight: 1, Borrowing: -1}}, p.Members...)
	}
	if r.Static {
		p.Strategy = ledger.Static
	}
	if r.Keyed {
		keyTo(&p)
	}
	return p
}

func memberName(i int) string { return fmt.Sprintf("region-%d", i+1) }

func (r *run) sum(reports []report, begin time.Time) result {
	out := result{run: *r}
	first := begin.UnixMicro()/r.Window.Microseconds() + warmUp
	p := r.params()
	all := map[tally]tally{} // by value and window
	for _, of := range reports {
		out.commands += of.Commands
		out.waits = append(out.waits, of.Waits...)
		for _, t := range of.Tallies {
			at := tally{Hash: t.Hash, Index: t.Index}
			sum := all[at]
			all[at] = tally{Admitted: sum.Admitted + t.Admitted, Refused: sum.Refused + t.Refused}
		}
	}
	for at, n := range all {
		out.over = max(out.over, n.Admitted-p.LimitOf(at.Hash))
		if at.Index >= first && at.Index < first+int64(r.Windows) {
			out.admitted += n.Admitted
			out.could += min(n.Admitted+n.Refused, p.LimitOf(at.Hash))
		}
	}
	slices.Sort(out.waits)
	return out
}

// play runs a region's process to its end.
func play(ctx context.Context, prefix []string, o order) (report, error) {
	self, err := os.Executable()
	if err != nil {
		return report{}, err
	}
	line := append(slices.Clone(prefix), self, "region")
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	var out, errors bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(encode(o)), &out, &errors
	if err := cmd.Run(); err != nil {
		return report{}, fmt.Errorf("%s: %w: %s", o.Member, err, errors.String())
	}
	var r report
	return r, json.Unmarshal(out.Bytes(), &r)
}

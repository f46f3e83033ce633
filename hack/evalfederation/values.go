package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/pkg/federation/coordinator/counters"
	"github.com/weir-dev/weir/pkg/federation/keyed"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/postgres"
	"github.com/weir-dev/weir/pkg/store/redis"
)

const (
	values      = 1000 // of the key
	valueLimit  = 20   // units of each in a window
	valuesAsked = 4500 // requests of all regions in a window
	zipf        = 1.05 // exponent
	ownValues   = 10   // the most popular ones, which have limits of their own
)

// ofValues are the runs of the table of values.
func ofValues(kind string) []run {
	return []run{{Kind: kind, Keyed: true, Latency: 20 * time.Millisecond, Window: 5 * time.Second, Windows: 2}}
}

// valueOf names a value, a path; the most popular is 0.
func valueOf(n int) policy.Value { return policy.Value{fmt.Sprintf("/%d", n)} }

// ownLimit is that of one of the values with limits of their own: every second has more than the
// others, the rest fewer.
func ownLimit(n int) int64 { return []int64{10 * valueLimit, valueLimit / 4}[n%2] }

// keyTo gives parameters a key.
func keyTo(p *ledger.Params) {
	p.Limit, p.Keys, p.Strategy = valueLimit, ledger.MaxKeys, ledger.FirstCome
	for n := range ownValues {
		p.Overrides = append(p.Overrides, ledger.Override{Hash: valueOf(n).Hash(), Limit: ownLimit(n)})
	}
	slices.SortFunc(p.Overrides, func(a, b ledger.Override) int { return cmp.Compare(a.Hash, b.Hash) })
}

// keyToObject gives an object the same key.
func keyToObject(s *v1alpha1.FederatedBudgetSpec) {
	s.Rate.Limit, s.Allocation = valueLimit, v1alpha1.FirstComeAllocation
	s.Key = &v1alpha1.BudgetKey{Parts: []v1alpha1.KeyPart{{Type: v1alpha1.PathPart}}, MaxKeys: int32(ledger.MaxKeys)}
	for n := range ownValues {
		s.Key.Overrides = append(s.Key.Overrides, v1alpha1.BudgetOverride{Values: []v1alpha1.KeyValue{{Parts: valueOf(n)}}, Limit: ownLimit(n)})
	}
}

// openKeyed returns the coordinator of a budget with a key at the end of the way, and what closes it.
func (w *way) openKeyed() (keyed.Coordinator, func(), error) {
	switch w.Kind {
	case redisKind:
		s := redis.Dial(w.Address)
		return counters.New(s), func() { _ = s.Close() }, nil
	case postgresKind:
		s, err := postgres.Dial(postgres.Options{Address: w.Address, User: postgresUser, Database: "postgres"})
		if err != nil {
			return nil, nil, err
		}
		return counters.New(s), func() { _ = s.Close() }, nil
	default:
		client, err := new(hub.Connections).Open(w.Address, w.Secret)
		if err != nil {
			return nil, nil, err
		}
		return client, client.Close, nil
	}
}

// playKeyed is a region of a budget with a key.
func (o *order) playKeyed(ctx context.Context) (report, error) {
	coordinator, closeWay, err := o.Way.openKeyed()
	if err != nil {
		return report{}, err
	}
	defer closeWay()
	region := keyed.New(keyed.Config{ID: o.Budget, Member: o.Member, Params: o.Params}, coordinator, nil)
	defer region.Close()
	popular := rand.NewZipf(rand.New(rand.NewPCG(1, uint64(o.Offered))), zipf, 1, values-1)
	before := region.Stats().Messages
	counted, err := o.offer(ctx, func() string { return valueOf(int(popular.Uint64())).Hash() }, func(hash string) (limiter.Result, error) {
		p := limiter.Params{Rates: []limiter.Rate{{Limit: o.Params.LimitOf(hash), Window: o.Params.Window}}}
		return region.Apply(ctx, store.Key{Hash: hash}, p, limiter.Command{Op: limiter.Take, Min: 1, Want: 1})
	})
	counted.Commands = region.Stats().Messages - before
	return counted, err
}

const valuesHeading = "\n## Values of a key\n"

// valuesTable is of budgets with a key.
func valuesTable(results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nEach of %d values has a limit of %d, %d have limits of their own of %d or %d. The regions are offered %d requests in a window of 5 s\n"+
		"by Zipf's law with exponent %.2f, a sixth, a third and a half of them, at 20 ms. What could be admitted of a value is what was asked for, up to its limit.\n\n",
		valuesHeading, values, valueLimit, ownValues, 10*valueLimit, valueLimit/4, valuesAsked, zipf)
	b.WriteString("| kept by | Δ of the worst value | admitted of what could be | messages in a window | p50, p95 and p99 in ms |\n|---|---|---|---|---|\n")
	for _, kind := range kinds {
		r := find(results, run{Kind: kind, Keyed: true, Latency: 20 * time.Millisecond, Window: 5 * time.Second})
		fmt.Fprintf(&b, "| %s | %d | %.3f | %d | %s |\n", kind, r.over, float64(r.admitted)/float64(max(1, r.could)), r.perWindow(), r.quantiles())
	}
	return b.String()
}

// writeValues puts the table into the page in the place of the one that is there.
func writeValues(dir string, results []result) error {
	file := filepath.Join(dir, "federation-evaluation.md")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, _, _ := strings.Cut(string(text), valuesHeading)
	return os.WriteFile(file, []byte(before+valuesTable(results)), 0o644)
}

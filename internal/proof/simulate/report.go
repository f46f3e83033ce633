package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/testing/plot"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A Report is what Measure measured.
type Report struct {
	Tables []Table
	Panels []plot.Panel
	// Overshoot is the most that any run admitted beyond a promise that Weir makes.
	Overshoot int64
	Events    int64
}

// Markdown renders the tables.
func (r Report) Markdown() string {
	var parts []string
	for _, t := range r.Tables {
		parts = append(parts, t.Markdown())
	}
	return strings.Join(parts, "\n")
}

// An Effort says how much is simulated.
type Effort struct {
	Windows int // of each run
	Seeds   int // storms for each promise
}

// Measure plays every scenario of the report. progress is called with how many runs are
// done.
func Measure(e Effort, progress func(done, total int)) Report {
	m := &measurement{effort: e}
	sections := []func(){
		m.fleets(), m.loads(), m.algorithms(), m.skews(), m.latencies(), m.partitions(), m.comparison(), m.storms(),
	}
	m.batch.run(progress)
	for _, section := range sections {
		section()
	}
	for _, r := range m.batch.results {
		m.report.Events += r.Events
	}
	return m.report
}

// A measurement is a report in the making. Each of its methods puts runs into the
// batch and returns what makes a table of their results.
type measurement struct {
	effort Effort
	batch  batch
	report Report
}

// sizes of fleets, as they were published.
var sizes = []int{2, 8, 32, 128, 256, 512}

const (
	limit = 1000
	lot   = 20 // units of a fixed lease
)

// adaptive is the configuration of Weir that policies have by default, but that no
// share of the limit is spent without the store.
var adaptive = twotier.Config{
	Size:          twotier.Size{Type: twotier.Adaptive, Batch: lot, Min: 1},
	OnUnavailable: twotier.Deny,
}

// goal is the most round trips a window shall cost: 2.5 times what is needed.
func goal(active int) float64 { return 2.5 * max(float64(active), limit/lot) }

// fleet is a load of three times the limit on n holders, as published.
func (m *measurement) fleet(model Model, n int) Scenario {
	return Scenario{
		Seed: 1, Model: model, Holders: n, Windows: m.effort.Windows + 2, Warm: 2,
		Params:  limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: limit, Window: 100 * limiter.Millisecond}}},
		Load:    Load{Rate: 3 * limit * 10},
		Network: Network{RTT: 5 * time.Millisecond, Jitter: 3 * time.Millisecond, Timeout: 100 * time.Millisecond},
	}
}

// play adds a run of Weir whose promise is to admit nothing too much.
func (m *measurement) play(s Scenario) func() Result {
	result := m.batch.add(s)
	return func() Result {
		r := result()
		m.report.Overshoot = max(m.report.Overshoot, r.Overshoot)
		return r
	}
}

func (m *measurement) table(t Table) { m.report.Tables = append(m.report.Tables, t) }

func ratio(v float64) string { return fmt.Sprintf("%.3f", v) }
func whole(v float64) string { return fmt.Sprintf("%.0f", v) }
func count(v int64) string   { return fmt.Sprint(v) }
func published(v float64, format func(float64) string) string {
	if v < 0 {
		return "–"
	}
	return format(v)
}

package failuremodes_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A row is one fault and what follows from it. Words name figures in braces.
type row struct {
	id    string
	fault string // what happens
	does  string // what the region, or the coordinator, does meanwhile
	lost  string
	heals string // how it recovers

	runs    place
	setup   setup
	figures figures
	prove   func(w *world) measured
}

// A place is where a row is proved.
type place uint8

const (
	virtual place = iota
	onRedis
	onPostgres
)

func (p place) String() string { return [...]string{"virtual time", "Redis", "Postgres"}[p] }

// A figure bounds a value that a test measures.
type figure struct {
	least, most float64
	unit        string
}

type (
	figures  map[string]figure
	measured map[string]float64
)

const unbounded = 1e15

func atLeast(n float64, unit string) figure { return figure{n, unbounded, unit} }
func atMost(n float64, unit string) figure  { return figure{-1, n, unit} }
func exactly(n float64, unit string) figure { return figure{n, n, unit} }

func (f figure) String() string {
	unit := f.unit
	if f.least == 1 && f.most == 1 || f.least < 0 && f.most == 1 {
		unit = strings.TrimSuffix(unit, "s")
	}
	switch {
	case f.least == f.most:
		return fmt.Sprintf("%g %s", f.most, unit)
	case f.least < 0:
		return fmt.Sprintf("at most %g %s", f.most, unit)
	case f.most < unbounded:
		return fmt.Sprintf("%g to %g %s", f.least, f.most, unit)
	default:
		return fmt.Sprintf("at least %g %s", f.least, unit)
	}
}

// holds reports whether a measurement is within the bound.
func (f figure) holds(n float64) bool { return f.least <= n && n <= f.most }

// words returns all that a row says.
func (r *row) words() string { return strings.Join([]string{r.fault, r.does, r.lost, r.heals}, " ") }

// filled puts the figures into words, which begin with a capital.
func (r *row) filled(words string) string {
	for name, f := range r.figures {
		words = strings.ReplaceAll(words, "{"+name+"}", f.String())
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

// TestRows injects every fault, and measures what the row says.
func TestRows(t *testing.T) {
	for _, s := range sections {
		for _, r := range s.rows {
			t.Run(r.id, func(t *testing.T) {
				if r.runs != virtual {
					t.Parallel() // it waits for servers and for windows
					r.check(t)
					return
				}
				synctest.Test(t, r.check)
			})
		}
	}
}

// check runs a row's proof. That no window admitted more than the limit holds in every
// row, and so does that an outage is a refusal and not an error.
func (r *row) check(t *testing.T) {
	w := newWorld(t, r)
	got := r.prove(w)
	w.end()
	if over := w.excess(); over > 0 {
		t.Errorf("a window admitted %d units more than its limit", over)
	}
	if w.admitted() < w.params.Limit {
		t.Errorf("%d units were admitted in all: the row tests nothing", w.admitted())
	}
	if failed := w.failed.Load(); failed > 0 {
		t.Errorf("%d requests were answered by an error", failed)
	}
	t.Logf("measured %v", got)
	for _, name := range slices.Sorted(maps.Keys(r.figures)) {
		n, ok := got[name]
		if f := r.figures[name]; !ok || !f.holds(n) {
			t.Errorf("%s is %g (measured: %t), and is said to be %v", name, n, ok, f)
		}
	}
	if len(got) != len(r.figures) {
		t.Errorf("measured %v, but said %v", got, r.figures)
	}
}

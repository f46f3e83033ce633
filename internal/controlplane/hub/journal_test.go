package hub

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

func record(term int64) kubernetes.Record {
	return kubernetes.Record{
		Window: limiter.Second, Index: 1_790_000_000, Limit: 100, Reserved: 30, Term: term, Writer: "w",
		Latest: 1_790_000_000_000_000, Since: 1_780_000_000_000_000, Slices: []kubernetes.Slice{{Member: "b", Units: 7}},
	}
}

// TestJournal writes records to a real API server.
func TestJournal(t *testing.T) {
	w := newWorld(t)
	j := NewJournal(w.maps)
	const id = "acme/Ünusual id"
	if _, _, err := j.Load(t.Context(), id); !errors.Is(err, kubernetes.ErrNotFound) {
		t.Errorf("no record: %v", err)
	}
	first, err := j.Save(t.Context(), id, record(1), "")
	if err != nil {
		t.Fatal(err)
	}
	requireConflict(t, "a second creation", j, id, "")
	got, version, err := j.Load(t.Context(), id)
	if diff := cmp.Diff(record(1), got); err != nil || version != first || diff != "" {
		t.Errorf("version %s, %v\n%s", version, err, diff)
	}
	second, err := j.Save(t.Context(), id, record(2), first)
	if err != nil || second == first {
		t.Errorf("version %s after %s, %v", second, first, err)
	}
	requireConflict(t, "an older version", j, id, first)
	if _, _, err := j.Load(t.Context(), "another"); !errors.Is(err, kubernetes.ErrNotFound) {
		t.Errorf("another budget: %v", err)
	}
	if err := w.maps.Delete(t.Context(), RecordName(id), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	requireConflict(t, "a record that was deleted", j, id, second)
}

func requireConflict(t *testing.T, what string, j *Journal, id, version string) {
	t.Helper()
	_, err := j.Save(t.Context(), id, record(9), version)
	if conflict := (*kubernetes.ConflictError)(nil); !errors.As(err, &conflict) || conflict.ID != id {
		t.Errorf("%s: got %v, want a conflict", what, err)
	}
}

// TestDamagedRecord names the ConfigMap and the cure.
func TestDamagedRecord(t *testing.T) {
	w := newWorld(t)
	j := NewJournal(w.maps)
	for what, data := range map[string]string{"not JSON": "x", "no record": "{}"} {
		if _, err := j.Save(t.Context(), what, record(1), ""); err != nil {
			t.Fatal(err)
		}
		found, err := w.maps.Get(t.Context(), RecordName(what), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found.Data[recordKey] = data
		if _, err := w.maps.Update(t.Context(), found, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := j.Load(t.Context(), what); err == nil || !strings.Contains(err.Error(), RecordName(what)+" is damaged; delete it") {
			t.Errorf("%s: got %v", what, err)
		}
		found.Annotations[IDAnnotation] = "another"
		if _, err := decodeRecord(found, what); err == nil || !strings.Contains(err.Error(), "delete it") {
			t.Errorf("another's: got %v", err)
		}
	}
}

// TestSweep deletes what nobody needs, and nothing else.
func TestSweep(t *testing.T) {
	w := newWorld(t)
	j := NewJournal(w.maps)
	forgotten := &books{ids: []string{budgetID, "gone"}}
	s := NewSweeper(j, w.budgets, forgotten)
	s.Clock = w.clock
	now := w.clock.Now()
	save := func(id string, over time.Duration, slices ...kubernetes.Slice) {
		r := record(1)
		r.Index, r.Slices = now.Add(-over).Unix(), slices
		if _, err := j.Save(t.Context(), id, r, ""); err != nil {
			t.Fatal(err)
		}
	}
	save(budgetID, 2*time.Hour)
	save("gone", 2*time.Hour)
	save("gone a moment ago", 10*time.Minute)
	save("gone, with slices", 2*time.Hour, kubernetes.Slice{Member: "b", Units: 7})
	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := limiter.Instant(now.Add(-time.Hour).UnixMicro()); !slices.Equal(forgotten.kept, []string{budgetID}) || forgotten.before != want {
		t.Errorf("books of %v are kept, and those of windows that end after %d; want that of the budget that is, and an hour", forgotten.kept, forgotten.before)
	}
	forgotten.ids = nil
	for id, kept := range map[string]bool{budgetID: true, "gone": false, "gone a moment ago": true, "gone, with slices": true} {
		r, _, err := j.Load(t.Context(), id)
		if errors.Is(err, kubernetes.ErrNotFound) == kept {
			t.Errorf("%s: %v", id, err)
		}
		if want := id == budgetID; err == nil && r.Kept() != want {
			t.Errorf("%s: another hub may keep it: %t, want %t", id, !r.Kept(), !want)
		}
	}
	w.budgets.drop(budgetID)
	s.Budgets = asked(func(id string) {
		r, version, err := j.Load(t.Context(), id)
		if r.Term = 2; err == nil {
			_, err = j.Save(t.Context(), id, r, version)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, _, err := j.Load(t.Context(), budgetID); err != nil || r.Term != 2 {
		t.Errorf("a budget that a leader takes up again meanwhile has the record %+v, %v", r, err)
	}
	s.Budgets = w.budgets
	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := j.Load(t.Context(), budgetID); !errors.Is(err, kubernetes.ErrNotFound) {
		t.Errorf("a budget that is not kept any more: %v", err)
	}
}

// books are those of some budgets; kept are those that a sweep leaves.
type books struct {
	ids, kept []string
	before    limiter.Instant
}

func (b *books) Sweep(kept func(id string) bool, before limiter.Instant) {
	b.kept, b.before = nil, before
	for _, id := range b.ids {
		if kept(id) {
			b.kept = append(b.kept, id)
		}
	}
}

// asked has no budgets; it is called when one is looked for.
type asked func(id string)

func (a asked) Budget(id string) (ledger.Params, bool) {
	a(id)
	return ledger.Params{}, false
}

func (asked) Members() []string { return nil }

func (asked) Credentialed() []string { return nil }

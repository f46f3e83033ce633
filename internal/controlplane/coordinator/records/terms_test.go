package records

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/records/recordstest"
)

// leads is said by a process that holds the lock.
func leads() bool { return true }

func begin(t *testing.T, terms *Terms) Handover {
	t.Helper()
	h, err := terms.Begin(t.Context(), leads)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestTermsRiseAndHandOverOnce(t *testing.T) {
	terms := NewTerms(recordstest.Holding())
	first := begin(t, terms)
	if !first.First {
		t.Error("the first term is not said to be the first")
	}
	left := Handover{Term: first.Term, Stopped: 1234, Pools: []byte{4, 5}, Returns: []byte{6}, Ledger: []byte{1, 2, 3}}
	if err := terms.End(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	left.Term++
	if diff := cmp.Diff(left, begin(t, terms)); diff != "" {
		t.Errorf("second term (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Handover{Term: first.Term + 2}, begin(t, terms)); diff != "" {
		t.Errorf("third term, after a crash (-want +got):\n%s", diff)
	}
}

// TestALapsedProcessRaisesNoTerm: sidecars that heard of such a term would refuse the one
// that leads. The process may lapse, and its successor begin, at any of its steps.
func TestALapsedProcessRaisesNoTerm(t *testing.T) {
	for name, before := range map[string]int{"the first term": 0, "a later term": 1} {
		for when, lapses := range map[string]int{"before the record is read": 1, "after it was found to lead": 2} {
			t.Run(name+", "+when, func(t *testing.T) {
				maps := recordstest.Holding()
				for range before {
					begin(t, NewTerms(maps))
				}
				asked := 0
				var successor Handover
				_, err := NewTerms(maps).Begin(t.Context(), func() bool {
					if asked++; asked == 1 {
						successor = begin(t, NewTerms(maps))
					}
					return asked < lapses
				})
				if !errors.Is(err, ErrLapsed) {
					t.Errorf("error = %v, want that it lapsed", err)
				}
				if next := begin(t, NewTerms(maps)); next.Term != successor.Term+1 {
					t.Errorf("the term after %d is %d", successor.Term, next.Term)
				}
			})
		}
	}
}

func TestALowerTermIsFenced(t *testing.T) {
	terms := NewTerms(recordstest.Holding())
	first := begin(t, terms)
	second := begin(t, terms)
	if err := terms.End(t.Context(), Handover{Term: first.Term, Ledger: []byte{1}}); !errors.Is(err, ErrFenced) {
		t.Errorf("End of the first term = %v, want %v", err, ErrFenced)
	}
	if err := terms.End(t.Context(), second); err != nil {
		t.Errorf("End of the second term: %v", err)
	}
}

// A term that begins between another's reading and writing fences it.
func TestALowerTermIsFencedInTheMiddleOfItsEnd(t *testing.T) {
	held := recordstest.Holding()
	terms := NewTerms(held)
	first := begin(t, terms)
	held.Disturb = []func(){func() { begin(t, terms) }}
	if err := terms.End(t.Context(), Handover{Term: first.Term, Ledger: []byte{1}}); !errors.Is(err, ErrFenced) {
		t.Errorf("End = %v, want %v", err, ErrFenced)
	}
	if got := begin(t, terms); got.Ledger != nil || got.Term != first.Term+2 {
		t.Errorf("third term = %+v, want no ledger", got)
	}
}

func TestTermsThatBeginAtOnceDiffer(t *testing.T) {
	held := recordstest.Holding()
	terms := NewTerms(held)
	first := begin(t, terms)
	if err := terms.End(t.Context(), Handover{Term: first.Term, Ledger: []byte{1}}); err != nil {
		t.Fatal(err)
	}
	var other Handover
	held.Disturb = []func(){func() { other = begin(t, terms) }}
	got := begin(t, terms)
	if got.Term != other.Term+1 || other.Ledger == nil || got.Ledger != nil {
		t.Errorf("terms %+v and %+v began at once, want the ledger in the first alone", other, got)
	}
}

func TestARecordThatIsNoTermIsAnError(t *testing.T) {
	for name, data := range map[string]map[string]string{
		"no term":               nil,
		"a term without number": {termKey: "first"},
		"a stop without number": {termKey: "1", stoppedKey: "noon"},
	} {
		t.Run(name, func(t *testing.T) {
			terms := NewTerms(recordstest.Holding(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: TermConfigMap}, Data: data}))
			if _, err := terms.Begin(t.Context(), leads); err == nil {
				t.Error("Begin = nil, want an error")
			}
		})
	}
}

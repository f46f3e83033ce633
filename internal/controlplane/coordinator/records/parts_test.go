package records

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/records/recordstest"
)

// inParts returns terms that put at most 100 bytes into a ConfigMap.
func inParts(held *recordstest.ConfigMaps) *Terms {
	terms := NewTerms(held)
	terms.most = 100
	return terms
}

// ledgerOf returns bytes that differ from those of another seed.
func ledgerOf(seed byte, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = seed + byte(i)*7
	}
	return out
}

// handOver has a term begin and end with that ledger.
func handOver(t *testing.T, terms *Terms, ledger []byte) Handover {
	t.Helper()
	h := Handover{Term: begin(t, terms).Term, Stopped: 1234, Pools: []byte("pools"), Ledger: ledger}
	if err := terms.End(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestALedgerOfAnySizeIsHandedOver(t *testing.T) {
	for _, size := range []int{1, 94, 95, 96, 194, 195, 196, 1000, 95 + 100*maxParts} {
		held := recordstest.Holding()
		terms := inParts(held)
		left := handOver(t, terms, ledgerOf(1, size))
		for name, m := range held.Held {
			bytes := 0
			for _, data := range m.BinaryData {
				bytes += len(data)
			}
			if bytes > terms.most {
				t.Errorf("%d bytes: ConfigMap %s holds %d", size, name, bytes)
			}
		}
		left.Term++
		if diff := cmp.Diff(left, begin(t, terms)); diff != "" {
			t.Errorf("%d bytes (-want +got):\n%s", size, diff)
		}
		if err := terms.Clear(t.Context(), left.Term); err != nil {
			t.Fatal(err)
		}
		if names := held.Names(); !slices.Equal(names, []string{TermConfigMap}) {
			t.Errorf("%d bytes: %v are left", size, names)
		}
	}
}

// TestATornLedgerIsNone damages what is between two leaders in every way: the next one
// begins without a ledger, and knows when the one before stopped.
func TestATornLedgerIsNone(t *testing.T) {
	const term = 7
	part := func(held *recordstest.ConfigMaps, i int) map[string][]byte {
		return held.Held[partName(term, i)].BinaryData
	}
	for name, tear := range map[string]func(held *recordstest.ConfigMaps, record *corev1.ConfigMap){
		"the first part is lost": func(h *recordstest.ConfigMaps, _ *corev1.ConfigMap) { delete(h.Held, partName(term, 0)) },
		"the last part is lost":  func(h *recordstest.ConfigMaps, _ *corev1.ConfigMap) { delete(h.Held, partName(term, 4)) },
		"all parts are lost": func(h *recordstest.ConfigMaps, _ *corev1.ConfigMap) {
			h.Held = map[string]*corev1.ConfigMap{TermConfigMap: h.Held[TermConfigMap]}
		},
		"a part is empty": func(h *recordstest.ConfigMaps, _ *corev1.ConfigMap) { part(h, 2)[ledgerKey] = nil },
		"a part is cut short": func(h *recordstest.ConfigMaps, _ *corev1.ConfigMap) {
			part(h, 4)[ledgerKey] = part(h, 4)[ledgerKey][:3]
		},
		"a bit is flipped": func(h *recordstest.ConfigMaps, _ *corev1.ConfigMap) { part(h, 3)[ledgerKey][50] ^= 1 },
		"two parts are swapped": func(h *recordstest.ConfigMaps, _ *corev1.ConfigMap) {
			a, b := part(h, 1), part(h, 2)
			a[ledgerKey], b[ledgerKey] = b[ledgerKey], a[ledgerKey]
		},
		"a part is of another term": func(h *recordstest.ConfigMaps, _ *corev1.ConfigMap) {
			part(h, 1)[ledgerKey] = ledgerOf(9, 500)[195:295]
		},
		"the beginning is another's":   func(_ *recordstest.ConfigMaps, r *corev1.ConfigMap) { r.BinaryData[ledgerKey] = ledgerOf(9, 95) },
		"the record names fewer parts": func(_ *recordstest.ConfigMaps, r *corev1.ConfigMap) { r.Data[partsKey] = "4" },
		"the record names more parts":  func(_ *recordstest.ConfigMaps, r *corev1.ConfigMap) { r.Data[partsKey] = "6" },
		"the record names no number":   func(_ *recordstest.ConfigMaps, r *corev1.ConfigMap) { r.Data[partsKey] = "some" },
		"the record names very many":   func(_ *recordstest.ConfigMaps, r *corev1.ConfigMap) { r.Data[partsKey] = "1000000000" },
		"the record names none":        func(_ *recordstest.ConfigMaps, r *corev1.ConfigMap) { delete(r.Data, partsKey) },
		"the sum is another":           func(_ *recordstest.ConfigMaps, r *corev1.ConfigMap) { r.Data[sumKey] = sumOf(nil) },
		"the sum is gone":              func(_ *recordstest.ConfigMaps, r *corev1.ConfigMap) { delete(r.Data, sumKey) },
	} {
		t.Run(name, func(t *testing.T) {
			held := recordstest.Holding(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: TermConfigMap}, Data: map[string]string{termKey: "6"}})
			terms := inParts(held)
			left := handOver(t, terms, ledgerOf(1, 500))
			if left.Term != term || len(held.Held) != 6 {
				t.Fatalf("term %d wrote %v", left.Term, held.Names())
			}
			tear(held, held.Held[TermConfigMap])
			got := begin(t, terms)
			if got.Ledger != nil || got.Lost == nil {
				t.Errorf("begun with a ledger of %d bytes, lost %v", len(got.Ledger), got.Lost)
			}
			if got.Stopped != left.Stopped || !bytes.Equal(got.Pools, left.Pools) || got.Term != term+1 {
				t.Errorf("begun %+v", got)
			}
			if again := begin(t, terms); again.Lost != nil || again.Stopped != 0 {
				t.Errorf("the term after begins with %+v", again)
			}
		})
	}
}

// TestPartsOfAnotherTermAreNotRead copies the parts of an earlier hand-over, of one
// record each, to where those of the last are looked for.
func TestPartsOfAnotherTermAreNotRead(t *testing.T) {
	held := recordstest.Holding()
	terms := inParts(held)
	first := handOver(t, terms, ledgerOf(1, 500))
	second := handOver(t, terms, ledgerOf(2, 500))
	for i := range 5 {
		held.Held[partName(second.Term, i)].BinaryData = held.Held[partName(first.Term, i)].BinaryData
	}
	if got := begin(t, terms); got.Ledger != nil || got.Lost == nil {
		t.Errorf("begun with a ledger of %d bytes", len(got.Ledger))
	}
}

// TestPartsThatCannotBeReadNowAreAwaited: an API server that does not answer has lost
// nothing.
func TestPartsThatCannotBeReadNowAreAwaited(t *testing.T) {
	held := recordstest.Holding()
	terms := inParts(held)
	left := handOver(t, terms, ledgerOf(1, 500))
	failure := errors.New("no route")
	held.Fail(failure)
	if _, err := terms.Begin(t.Context(), leads); !errors.Is(err, failure) {
		t.Fatalf("Begin = %v, want %v", err, failure)
	}
	held.Fail(nil)
	if got := begin(t, terms); !bytes.Equal(got.Ledger, left.Ledger) {
		t.Error("the ledger is lost")
	}
}

// TestAFencedTermWritesNoParts: nor does one that is fenced later change what counts.
func TestAFencedTermWritesNoParts(t *testing.T) {
	held := recordstest.Holding()
	terms := inParts(held)
	first := begin(t, terms)
	second := begin(t, terms)
	first.Ledger, second.Ledger = ledgerOf(1, 500), ledgerOf(2, 500)
	if err := terms.End(t.Context(), first); !errors.Is(err, ErrFenced) || len(held.Held) != 1 {
		t.Errorf("End = %v and wrote %v", err, held.Names())
	}
	if _, err := terms.writeParts(t.Context(), first.Term, first.Ledger[95:]); err != nil { // it believed to lead
		t.Fatal(err)
	}
	if err := terms.End(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if err := terms.Clear(t.Context(), second.Term); err != nil {
		t.Fatal(err)
	}
	if names := held.Names(); len(names) != 5 || !strings.HasPrefix(names[1], partName(second.Term, 0)) {
		t.Errorf("%v are left, want the parts of term %d", names, second.Term)
	}
	if got := begin(t, terms); !bytes.Equal(got.Ledger, second.Ledger) {
		t.Errorf("begun %+v, want the ledger of the second term", got)
	}
}

// TestWritingAPartIsTriedAgain until the time is over; a refusal is not.
func TestWritingAPartIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := recordstest.Holding()
		terms := inParts(held)
		h := begin(t, terms)
		held.Fail(errors.New("no route"))
		wrote := make(chan error)
		go func() {
			_, err := terms.writeParts(t.Context(), h.Term, ledgerOf(1, 500))
			wrote <- err
		}()
		time.Sleep(time.Second)
		held.Fail(nil)
		if err := <-wrote; err != nil || len(held.Held) != 6 {
			t.Errorf("wrote %v, %v", held.Names(), err)
		}
	})
}

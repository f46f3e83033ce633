package coordinator

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// configMaps holds ConfigMaps as an API server does. Before each update it runs the
// next of disturb.
type configMaps struct {
	corev1client.ConfigMapInterface
	mu      sync.Mutex
	held    map[string]*corev1.ConfigMap
	version int
	disturb []func()
	failure error // of whatever is asked, but for the record
	unheard bool  // the answer to the next update is lost
}

func holding(all ...*corev1.ConfigMap) *configMaps {
	c := &configMaps{held: map[string]*corev1.ConfigMap{}}
	for _, m := range all {
		c.held[m.Name] = m
	}
	return c
}

func (c *configMaps) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.ConfigMap, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil && name != TermConfigMap {
		return nil, c.failure
	}
	if c.held[name] == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), name)
	}
	return c.held[name].DeepCopy(), nil
}

func (c *configMaps) Create(_ context.Context, m *corev1.ConfigMap, _ metav1.CreateOptions) (*corev1.ConfigMap, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		return nil, c.failure
	}
	if c.held[m.Name] != nil {
		return nil, apierrors.NewAlreadyExists(corev1.Resource("configmaps"), m.Name)
	}
	return c.write(m), nil
}

func (c *configMaps) Update(_ context.Context, m *corev1.ConfigMap, _ metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	if len(c.disturb) > 0 {
		next := c.disturb[0]
		c.disturb = c.disturb[1:]
		next()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil && m.Name != TermConfigMap {
		return nil, c.failure
	}
	if c.held[m.Name] == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), m.Name)
	}
	if m.ResourceVersion != c.held[m.Name].ResourceVersion {
		return nil, apierrors.NewConflict(corev1.Resource("configmaps"), m.Name, errors.New("it has changed"))
	}
	if c.unheard {
		c.unheard = false
		c.write(m)
		return nil, errors.New("the connection is lost")
	}
	return c.write(m), nil
}

func (c *configMaps) List(_ context.Context, o metav1.ListOptions) (*corev1.ConfigMapList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := &corev1.ConfigMapList{}
	label, value, one := strings.Cut(o.LabelSelector, "=")
	for _, name := range slices.Sorted(maps.Keys(c.held)) {
		switch m := c.held[name]; {
		case m.Labels[label] == "" || one && m.Labels[label] != value || name <= o.Continue:
		case len(out.Items) == int(o.Limit):
			out.Continue = out.Items[len(out.Items)-1].Name
			return out, nil
		default:
			out.Items = append(out.Items, *m.DeepCopy())
		}
	}
	return out, nil
}

func (c *configMaps) Delete(_ context.Context, name string, o metav1.DeleteOptions) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := o.Preconditions; p != nil && c.held[name] != nil && *p.ResourceVersion != c.held[name].ResourceVersion {
		return apierrors.NewConflict(corev1.Resource("configmaps"), name, errors.New("it has changed"))
	}
	delete(c.held, name)
	return nil
}

func (c *configMaps) write(m *corev1.ConfigMap) *corev1.ConfigMap {
	c.version++
	held := m.DeepCopy()
	held.ResourceVersion = strconv.Itoa(c.version)
	c.held[m.Name] = held
	return held.DeepCopy()
}

func begin(t *testing.T, terms *ConfigMapTerms) Handover {
	t.Helper()
	h, err := terms.Begin(t.Context(), leads)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestTermsRiseAndHandOverOnce(t *testing.T) {
	terms := NewConfigMapTerms(holding())
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
				maps := holding()
				for range before {
					begin(t, NewConfigMapTerms(maps))
				}
				asked := 0
				var successor Handover
				_, err := NewConfigMapTerms(maps).Begin(t.Context(), func() bool {
					if asked++; asked == 1 {
						successor = begin(t, NewConfigMapTerms(maps))
					}
					return asked < lapses
				})
				if !errors.Is(err, ErrLapsed) {
					t.Errorf("error = %v, want that it lapsed", err)
				}
				if next := begin(t, NewConfigMapTerms(maps)); next.Term != successor.Term+1 {
					t.Errorf("the term after %d is %d", successor.Term, next.Term)
				}
			})
		}
	}
}

func TestALowerTermIsFenced(t *testing.T) {
	terms := NewConfigMapTerms(holding())
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
	held := holding()
	terms := NewConfigMapTerms(held)
	first := begin(t, terms)
	held.disturb = []func(){func() { begin(t, terms) }}
	if err := terms.End(t.Context(), Handover{Term: first.Term, Ledger: []byte{1}}); !errors.Is(err, ErrFenced) {
		t.Errorf("End = %v, want %v", err, ErrFenced)
	}
	if got := begin(t, terms); got.Ledger != nil || got.Term != first.Term+2 {
		t.Errorf("third term = %+v, want no ledger", got)
	}
}

func TestTermsThatBeginAtOnceDiffer(t *testing.T) {
	held := holding()
	terms := NewConfigMapTerms(held)
	first := begin(t, terms)
	if err := terms.End(t.Context(), Handover{Term: first.Term, Ledger: []byte{1}}); err != nil {
		t.Fatal(err)
	}
	var other Handover
	held.disturb = []func(){func() { other = begin(t, terms) }}
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
			terms := NewConfigMapTerms(holding(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: TermConfigMap}, Data: data}))
			if _, err := terms.Begin(t.Context(), leads); err == nil {
				t.Error("Begin = nil, want an error")
			}
		})
	}
}

// inParts returns terms that put at most 100 bytes into a ConfigMap.
func inParts(held *configMaps) *ConfigMapTerms {
	terms := NewConfigMapTerms(held)
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

func (c *configMaps) names() []string { return slices.Sorted(maps.Keys(c.held)) }

// handOver has a term begin and end with that ledger.
func handOver(t *testing.T, terms *ConfigMapTerms, ledger []byte) Handover {
	t.Helper()
	h := Handover{Term: begin(t, terms).Term, Stopped: 1234, Pools: []byte("pools"), Ledger: ledger}
	if err := terms.End(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestALedgerOfAnySizeIsHandedOver(t *testing.T) {
	for _, size := range []int{1, 94, 95, 96, 194, 195, 196, 1000, 95 + 100*maxParts} {
		held := holding()
		terms := inParts(held)
		left := handOver(t, terms, ledgerOf(1, size))
		for name, m := range held.held {
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
		if names := held.names(); !slices.Equal(names, []string{TermConfigMap}) {
			t.Errorf("%d bytes: %v are left", size, names)
		}
	}
}

// TestATornLedgerIsNone damages what is between two leaders in every way: the next one
// begins without a ledger, and knows when the one before stopped.
func TestATornLedgerIsNone(t *testing.T) {
	const term = 7
	part := func(held *configMaps, i int) map[string][]byte { return held.held[partName(term, i)].BinaryData }
	for name, tear := range map[string]func(held *configMaps, record *corev1.ConfigMap){
		"the first part is lost": func(h *configMaps, _ *corev1.ConfigMap) { delete(h.held, partName(term, 0)) },
		"the last part is lost":  func(h *configMaps, _ *corev1.ConfigMap) { delete(h.held, partName(term, 4)) },
		"all parts are lost": func(h *configMaps, _ *corev1.ConfigMap) {
			h.held = map[string]*corev1.ConfigMap{TermConfigMap: h.held[TermConfigMap]}
		},
		"a part is empty":     func(h *configMaps, _ *corev1.ConfigMap) { part(h, 2)[ledgerKey] = nil },
		"a part is cut short": func(h *configMaps, _ *corev1.ConfigMap) { part(h, 4)[ledgerKey] = part(h, 4)[ledgerKey][:3] },
		"a bit is flipped":    func(h *configMaps, _ *corev1.ConfigMap) { part(h, 3)[ledgerKey][50] ^= 1 },
		"two parts are swapped": func(h *configMaps, _ *corev1.ConfigMap) {
			a, b := part(h, 1), part(h, 2)
			a[ledgerKey], b[ledgerKey] = b[ledgerKey], a[ledgerKey]
		},
		"a part is of another term":    func(h *configMaps, _ *corev1.ConfigMap) { part(h, 1)[ledgerKey] = ledgerOf(9, 500)[195:295] },
		"the beginning is another's":   func(_ *configMaps, r *corev1.ConfigMap) { r.BinaryData[ledgerKey] = ledgerOf(9, 95) },
		"the record names fewer parts": func(_ *configMaps, r *corev1.ConfigMap) { r.Data[partsKey] = "4" },
		"the record names more parts":  func(_ *configMaps, r *corev1.ConfigMap) { r.Data[partsKey] = "6" },
		"the record names no number":   func(_ *configMaps, r *corev1.ConfigMap) { r.Data[partsKey] = "some" },
		"the record names very many":   func(_ *configMaps, r *corev1.ConfigMap) { r.Data[partsKey] = "1000000000" },
		"the record names none":        func(_ *configMaps, r *corev1.ConfigMap) { delete(r.Data, partsKey) },
		"the sum is another":           func(_ *configMaps, r *corev1.ConfigMap) { r.Data[sumKey] = sumOf(nil) },
		"the sum is gone":              func(_ *configMaps, r *corev1.ConfigMap) { delete(r.Data, sumKey) },
	} {
		t.Run(name, func(t *testing.T) {
			held := holding(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: TermConfigMap}, Data: map[string]string{termKey: "6"}})
			terms := inParts(held)
			left := handOver(t, terms, ledgerOf(1, 500))
			if left.Term != term || len(held.held) != 6 {
				t.Fatalf("term %d wrote %v", left.Term, held.names())
			}
			tear(held, held.held[TermConfigMap])
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
	held := holding()
	terms := inParts(held)
	first := handOver(t, terms, ledgerOf(1, 500))
	second := handOver(t, terms, ledgerOf(2, 500))
	for i := range 5 {
		held.held[partName(second.Term, i)].BinaryData = held.held[partName(first.Term, i)].BinaryData
	}
	if got := begin(t, terms); got.Ledger != nil || got.Lost == nil {
		t.Errorf("begun with a ledger of %d bytes", len(got.Ledger))
	}
}

// TestPartsThatCannotBeReadNowAreAwaited: an API server that does not answer has lost
// nothing.
func TestPartsThatCannotBeReadNowAreAwaited(t *testing.T) {
	held := holding()
	terms := inParts(held)
	left := handOver(t, terms, ledgerOf(1, 500))
	held.failure = errors.New("no route")
	if _, err := terms.Begin(t.Context(), leads); !errors.Is(err, held.failure) {
		t.Fatalf("Begin = %v, want %v", err, held.failure)
	}
	held.failure = nil
	if got := begin(t, terms); !bytes.Equal(got.Ledger, left.Ledger) {
		t.Error("the ledger is lost")
	}
}

// TestAFencedTermWritesNoParts: nor does one that is fenced later change what counts.
func TestAFencedTermWritesNoParts(t *testing.T) {
	held := holding()
	terms := inParts(held)
	first := begin(t, terms)
	second := begin(t, terms)
	first.Ledger, second.Ledger = ledgerOf(1, 500), ledgerOf(2, 500)
	if err := terms.End(t.Context(), first); !errors.Is(err, ErrFenced) || len(held.held) != 1 {
		t.Errorf("End = %v and wrote %v", err, held.names())
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
	if names := held.names(); len(names) != 5 || !strings.HasPrefix(names[1], partName(second.Term, 0)) {
		t.Errorf("%v are left, want the parts of term %d", names, second.Term)
	}
	if got := begin(t, terms); !bytes.Equal(got.Ledger, second.Ledger) {
		t.Errorf("begun %+v, want the ledger of the second term", got)
	}
}

// TestWritingAPartIsTriedAgain until the time is over; a refusal is not.
func TestWritingAPartIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := holding()
		terms := inParts(held)
		h := begin(t, terms)
		held.failure = errors.New("no route")
		wrote := make(chan error)
		go func() {
			_, err := terms.writeParts(t.Context(), h.Term, ledgerOf(1, 500))
			wrote <- err
		}()
		time.Sleep(time.Second)
		held.mu.Lock()
		held.failure = nil
		held.mu.Unlock()
		if err := <-wrote; err != nil || len(held.held) != 6 {
			t.Errorf("wrote %v, %v", held.names(), err)
		}
	})
}

// TestATornLedgerGrantsNothingOfOpenWindows follows a torn hand-over through a term,
// and the same hand-over when it is whole.
func TestATornLedgerGrantsNothingOfOpenWindows(t *testing.T) {
	const limit = 10
	key := store.Key{Scope: store.Scope{Cluster: "test", Namespace: "shop", Policy: "checkout", Limit: "all"}}
	p := limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: limit, Window: 3600 * limiter.Second}}}
	take := func(tm *term, want int64) limiter.Result {
		res, err := tm.store.Apply(t.Context(), key, p, limiter.Command{Min: 1, Want: want})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for name, tear := range map[string]func(held *configMaps, earlier, last uint64){
		"whole":       func(*configMaps, uint64, uint64) {},
		"a part lost": func(h *configMaps, _, last uint64) { delete(h.held, partName(last, 0)) },
		"an older part": func(h *configMaps, earlier, last uint64) {
			h.held[partName(last, 0)].BinaryData = h.held[partName(earlier, 0)].BinaryData
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				held := holding()
				terms := NewConfigMapTerms(held)
				c := New(Config{Terms: terms})
				lead := func() *term {
					begun, err := terms.Begin(t.Context(), leads)
					if err != nil {
						t.Fatal(err)
					}
					tm := newTerm(c, begun, logr.Discard())
					tm.tasks.ShutDown()
					return tm
				}
				// All of the ledger is in one part: each is good by itself, and only one is the last.
				end := func(tm *term) {
					ledger, _, err := tm.store.Export(maxHandover)
					if err != nil {
						t.Fatal(err)
					}
					terms.most = len(ledger)
					h := Handover{Term: tm.number, Stopped: tm.clock.Now(), Pools: make([]byte, len(ledger)), Ledger: ledger}
					if err := terms.End(t.Context(), h); err != nil {
						t.Fatal(err)
					}
				}
				first := lead()
				time.Sleep(time.Second)
				take(first, 1)
				end(first)
				second := lead()
				take(second, limit-1)
				end(second)
				tear(held, first.number, second.number)
				time.Sleep(time.Second)
				want := limiter.Amnesia
				if name == "whole" {
					want = limiter.Exhausted
				}
				if got := take(lead(), limit); got.Granted != 0 || got.Reason != want {
					t.Errorf("granted %d of a window that is used up (%v), want nothing for reason %v", got.Granted, got.Reason, want)
				}
			})
		})
	}
}

// A recordStore is a BirthStore or a JournalStore, whose records are known by K.
type recordStore[K any] interface {
	Load(ctx context.Context, of K) ([]byte, string, error)
	Save(ctx context.Context, of K, data []byte, version string) (string, error)
}

func TestRecordsAreWrittenByCompareAndSwap(t *testing.T) {
	t.Run("births", func(t *testing.T) { compareAndSwap(t, NewConfigMapBirths(holding()), 3, 4) })
	t.Run("counters", func(t *testing.T) { compareAndSwap(t, NewConfigMapJournals(holding()), "shop/a", "shop/b") })
}

func compareAndSwap[K any](t *testing.T, s recordStore[K], one, other K) {
	var versions []string
	version := ""
	for _, data := range []string{"first", "second"} {
		if got, at, err := s.Load(t.Context(), one); err != nil || at != version || len(versions) == 0 && got != nil {
			t.Fatalf("loaded %q of version %q, error %v; want version %q", got, at, err, version)
		}
		var err error
		if version, err = s.Save(t.Context(), one, []byte(data), version); err != nil {
			t.Fatal(err)
		}
		versions = append(versions, version)
	}
	for _, old := range append(versions[:1], "") {
		if _, err := s.Save(t.Context(), one, []byte("third"), old); err == nil {
			t.Errorf("version %q was written over", old)
		}
	}
	if got, at, err := s.Load(t.Context(), one); err != nil || string(got) != "second" || at != version {
		t.Errorf("loaded %q of version %q, error %v; want the second of version %q", got, at, err, version)
	}
	if got, at, err := s.Load(t.Context(), other); err != nil || got != nil || at != "" {
		t.Errorf("loaded %q of version %q of another, error %v; want nothing", got, at, err)
	}
}

// TestTheRecordsOfCountersThatAreOverAreSwept, unless they were written meanwhile.
func TestTheRecordsOfCountersThatAreOverAreSwept(t *testing.T) {
	maps := holding(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{CountersLabel: "other"}}})
	journals, versions := NewConfigMapJournals(maps), map[string]string{}
	for _, policy := range []string{"shop/over", "shop/counts", "shop/revived", "shop/over-too", ""} {
		var err error
		if versions[policy], err = journals.Save(t.Context(), policy, []byte(policy), ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := journals.Sweep(t.Context(), func(policy string, data []byte) bool {
		if string(data) != policy {
			t.Errorf("the record of %s is %q", policy, data)
		}
		if policy == "shop/revived" {
			if _, err := journals.Save(t.Context(), policy, data, versions[policy]); err != nil {
				t.Error(err)
			}
		}
		return policy != "shop/counts"
	}); err != nil {
		t.Fatal(err)
	}
	for policy, want := range map[string]bool{"shop/over": false, "shop/counts": true, "shop/revived": true, "shop/over-too": false, "": true} {
		if _, is := maps.held[countersName(policy)]; is != want {
			t.Errorf("there is a record of %q: %t, want %t", policy, is, want)
		}
	}
	if maps.held["other"] == nil {
		t.Error("a ConfigMap of another kind is gone")
	}
}

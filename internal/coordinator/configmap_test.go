package coordinator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
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

package coordinator

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

package records

import (
	"context"
	"testing"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/records/recordstest"
)

// A recordStore is a births.Store or a journals.Store, whose records are known by K.
type recordStore[K any] interface {
	Load(ctx context.Context, of K) ([]byte, string, error)
	Save(ctx context.Context, of K, data []byte, version string) (string, error)
}

func TestRecordsAreWrittenByCompareAndSwap(t *testing.T) {
	t.Run("births", func(t *testing.T) { compareAndSwap(t, NewBirths(recordstest.Holding()), 3, 4) })
	t.Run("counters", func(t *testing.T) { compareAndSwap(t, NewCounters(recordstest.Holding()), "shop/a", "shop/b") })
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

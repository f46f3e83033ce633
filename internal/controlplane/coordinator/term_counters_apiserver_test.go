package coordinator

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/journals"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/records"
	"github.com/weir-dev/weir/internal/testing/apiserver"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// weighed is a journals.Store that measures what is written.
type weighed struct {
	journals.Store
	mu                   sync.Mutex
	writes, bytes, last  int
	longest, spent, mean time.Duration
}

func (w *weighed) Save(ctx context.Context, policy string, data []byte, version string) (string, error) {
	began := time.Now()
	version, err := w.Store.Save(ctx, policy, data, version)
	took := time.Since(began)
	w.mu.Lock()
	defer w.mu.Unlock()
	if policy != "" {
		w.writes, w.bytes, w.last = w.writes+1, w.bytes+len(data), len(data)
		w.longest, w.spent = max(w.longest, took), w.spent+took
		w.mean = w.spent / time.Duration(w.writes)
	}
	return version, err
}

// onServer returns a journals.Store on a real API server.
func onServer(t *testing.T) journals.Store {
	t.Helper()
	clients := apiserver.Clients(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "weir-system"}}
	if _, err := clients.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return records.NewCounters(clients.CoreV1().ConfigMaps("weir-system"))
}

// aDay returns the parameters of a day that began an hour ago, of a new limit of the term.
func aDay(t *term, limit int64) limiter.Params {
	offset := 3600*limiter.Second - limiter.Micros(t.clock.Now())%limiter.Day
	return limiter.Params{
		Generation: 1, Rates: []limiter.Rate{{Limit: limit, Window: limiter.Day, Offset: offset}},
		Retention: limiter.Retention{Durable: true, Born: t.store.Facts().Durable.Memories},
	}
}

// TestADayGoesOnOnAnAPIServer kills leaders in the midst of a day, again and again, whose
// records are on a real API server.
func TestADayGoesOnOnAnAPIServer(t *testing.T) {
	kept := &weighed{Store: onServer(t)}
	c := New(Config{Journals: kept})
	key := store.Key{Scope: store.Scope{Cluster: "c", Namespace: "shop", Policy: "quota", Limit: "all"}}

	t.Run("a kill forfeits a block", func(t *testing.T) {
		const limit, kills = 20_000, 20
		var granted, counted int64
		var p limiter.Params
		for number := range uint64(kills + 1) {
			leader := newTerm(c, records.Handover{Term: number + 1, First: number == 0}, logr.Discard())
			if number == 0 {
				p = aDay(leader, limit)
			}
			began, resumed := time.Now(), time.Duration(0)
			for resumed == 0 && time.Since(began) < 5*time.Second || time.Since(began) < resumed+300*time.Millisecond {
				res, err := leader.store.Apply(t.Context(), key, p, limiter.Command{Min: 1, Want: 20})
				if err != nil || res.Reason == limiter.Amnesia {
					t.Fatalf("term %d: %+v, %v", number+1, res, err)
				}
				if res.Granted > 0 {
					granted, counted = granted+res.Granted, res.Windows.Open[0].Granted
					if resumed == 0 {
						resumed = time.Since(began)
					}
				}
				<-time.After(10 * time.Millisecond)
			}
			if resumed == 0 {
				t.Errorf("term %d grants nothing for 5 s", number+1)
			}
			p.Retention.Born = nil
			leader.journals.Stop() // it hands nothing over
			leader.tasks.ShutDown()
		}
		t.Logf("%d granted, %d forfeited of %d by %d kills; %d writes of %s, at most %s", granted, counted-granted, limit, kills, kept.writes, kept.mean, kept.longest)
		if counted < granted || counted > limit || counted-granted > limit/8 {
			t.Errorf("%d granted, %d count", granted, counted)
		}
	})

	span := 3 * time.Second
	if text := os.Getenv("WEIR_COUNTERS_TIME"); text != "" {
		var err error
		if span, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	for i, keys := range []int{1, 1000, 10_000} {
		t.Run(fmt.Sprint(keys, " keys"), func(t *testing.T) {
			key := key
			key.Scope.Policy = fmt.Sprint("keyed-", keys)
			leader := newTerm(c, records.Handover{Term: uint64(100 + i), First: true}, logr.Discard())
			defer leader.tasks.ShutDown()
			defer leader.journals.Stop()
			p := aDay(leader, 1_000_000/int64(keys))
			hashes := make([]string, keys)
			for i := range hashes {
				hashes[i] = store.HashValue(fmt.Sprint(i))
			}
			before := weighed{writes: kept.writes, bytes: kept.bytes}
			var granted, asked int64
			began := time.Now()
			for time.Since(began) < span {
				for range 20 { // 2,000 a second at most
					key.Hash = hashes[asked%int64(keys)]
					res, err := leader.store.Apply(t.Context(), key, p, limiter.Command{Min: 1, Want: 1})
					if err != nil {
						t.Fatal(err)
					}
					granted, asked = granted+res.Granted, asked+1
				}
				<-time.After(10 * time.Millisecond)
			}
			kept.mu.Lock()
			defer kept.mu.Unlock()
			writes, bytes := kept.writes-before.writes, kept.bytes-before.bytes
			t.Logf("%d of %d granted in %s: %.2f writes/s, %d bytes each at the end, %.1f KiB/s",
				granted, asked, span, float64(writes)/span.Seconds(), kept.last, float64(bytes)/1024/span.Seconds())
			if most := span.Seconds() + 6; float64(writes) > most || float64(bytes) > most*(64<<10)+5*float64(kept.last) {
				t.Errorf("%d writes of %d bytes, want fewer than %.0f", writes, bytes, most)
			}
		})
	}
}

package backend

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"
)

func get(ctx context.Context, t *testing.T, b *Backend) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.Address(), http.NoBody)
	if err != nil {
		t.Error(err)
		return
	}
	if resp, err := http.DefaultClient.Do(r); err == nil {
		_ = resp.Body.Close()
	}
}

func TestRequestsBeyondTheThreadsWait(t *testing.T) {
	b, err := Start(2, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	began := time.Now()
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() { get(t.Context(), t, b) })
	}
	all.Wait()
	ended := time.Now().Add(bucket)
	if took := time.Since(began); took < 150*time.Millisecond {
		t.Errorf("6 requests took %s by 2 threads, want three turns of 50ms", took)
	}
	if peak := b.Peak(began, ended); peak < 3 || peak > 6 {
		t.Errorf("the peak is %d, want 3 to 6", peak)
	}
	if n, median := b.Served(began, ended, 0.5); n != 6 || median < 50*time.Millisecond {
		t.Errorf("served %d, half of them within %s", n, median)
	}
	if n := b.InFlight(); n != 0 {
		t.Errorf("%d are still here", n)
	}
}

func TestARequestThatIsGivenUpLeavesTheQueue(t *testing.T) {
	b, err := Start(1, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var all sync.WaitGroup
	all.Go(func() { get(t.Context(), t, b) })
	for b.InFlight() == 0 { // until the thread is taken
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	get(ctx, t, b)
	for b.InFlight() > 1 {
		if time.Since(began) > 1500*time.Millisecond {
			t.Fatal("the request still waits")
		}
		time.Sleep(time.Millisecond)
	}
	all.Wait()
}

func TestGauge(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(100, 0).Add(time.Duration(n) * bucket) }
	var g gauge
	g.add(at(0), 5)
	g.add(at(0), -3)
	g.add(at(4), 1)
	for name, c := range map[string]struct {
		from, to int
		want     int64
	}{
		"the peak of a bucket":               {0, 1, 5},
		"what stayed is in later buckets":    {1, 2, 2},
		"a change adds to what stayed":       {4, 5, 3},
		"what stays reaches into the open":   {7, 9, 3},
		"nothing before the first":           {-3, 0, 0},
		"the largest of all":                 {0, 9, 5},
		"a value that did not change counts": {2, 4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := g.peak(at(c.from), at(c.to)); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

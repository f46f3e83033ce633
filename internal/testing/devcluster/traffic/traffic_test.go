package traffic

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSeriesCountsByTime(t *testing.T) {
	start := time.Unix(1000, 0)
	var s Series
	for _, after := range []time.Duration{-time.Nanosecond, 0, 99 * time.Millisecond, 999 * time.Millisecond, time.Second} {
		s.Add(start.Add(after))
	}
	if got := s.Between(start, start.Add(time.Second)); got != 3 {
		t.Errorf("Between counted %d events, want the 3 from the start to before the end", got)
	}
	if got := s.Total(); got != 5 {
		t.Errorf("Total = %d, want 5", got)
	}
}

func TestSeriesForgetsOldEvents(t *testing.T) {
	start := time.Unix(100_000, 0)
	var s Series
	s.Add(start)
	s.Add(start.Add(keep + 2*time.Minute))
	if got := len(s.counts); got != 1 {
		t.Errorf("%d buckets are kept, want 1", got)
	}
}

func TestTallyHearsOfEveryRequestBeforeItsAnswer(t *testing.T) {
	tally, err := NewTally()
	if err != nil {
		t.Fatal(err)
	}
	marks := make(chan string, 3)
	tally.OnArrival = func(pod string, at time.Time, mark string) { marks <- pod + at.Format(" 05 ") + mark }
	app, err := Report(tally.Address(), "a")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1000, 0)
	for range 3 {
		if err := app.Reached(at, "my mark"); err != nil {
			t.Fatal(err)
		}
	}
	if err := app.conn.Close(); err != nil { // as when the application is killed
		t.Fatal(err)
	}
	for tally.Pod("a").Total() < 3 && t.Context().Err() == nil {
		<-time.After(time.Millisecond)
	}
	tally.Close()
	if got := <-marks; got != at.Format("a 05 my mark") {
		t.Errorf("the arrival is %q", got)
	}
	if got := tally.Between(at, at.Add(time.Second)); got != 3 {
		t.Errorf("the tally has %d requests, want 3", got)
	}
}

func TestLoadIsOpenLoop(t *testing.T) {
	var served atomic.Int64
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if served.Add(1)%2 == 0 {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		<-release
	}))
	defer server.Close()
	load := NewLoad(1000)
	load.SetTargets([]Target{{Pod: "a", Address: strings.TrimPrefix(server.URL, "http://")}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { load.Run(ctx); close(done) }()

	for served.Load() < 20 && t.Context().Err() == nil { // although none was answered
		<-time.After(time.Millisecond)
	}
	cancel()
	close(release)
	<-done
	a := load.Of("a")
	offered, answered := a.Offered.Total(), a.Admitted.Total()+a.Refused.Total()
	if offered < 20 || answered != offered || a.Failed.Total() != 0 {
		t.Errorf("offered %d, answered %d, failed %d; want all answered", offered, answered, a.Failed.Total())
	}
	if diff := a.Admitted.Total() - a.Refused.Total(); diff < 0 || diff > 1 {
		t.Errorf("admitted %d and refused %d, want halves", a.Admitted.Total(), a.Refused.Total())
	}
}

package fleet

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
)

// TestReportsWaitForALeaderThatIsBehind, if it answers reports at all: what is in its memory is bounded.
func TestReportsWaitForALeaderThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, end := reporting(t, &fleetpb.Welcome{ReportIntervalMillis: 1000, AnswersReports: true})
		defer end()
		l.reported <- struct{}{} // which nothing asked for
		time.Sleep(time.Minute)
		if n := len(l.out); n != maxUnanswered {
			t.Fatalf("%d reports without an answer, want %d", n, maxUnanswered)
		}
		for i := range maxUnanswered {
			if ask := (<-l.out).GetReport().GetAnswer(); ask != (i == askEvery-1) {
				t.Errorf("report %d asks for an answer: %t", i, ask)
			}
		}
		l.reported <- struct{}{}
		if synctest.Wait(); len(l.out) != 1 || !(<-l.out).GetReport().GetAnswer() {
			t.Fatal("what was left out is not said as soon as there is an answer, and answered in its turn")
		}
		time.Sleep(time.Minute)
		if n := len(l.out); n != askEvery-1 { // with the four that nobody has answered, and that one
			t.Fatalf("%d more reports, want %d", n, askEvery-1)
		}
		for range askEvery - 1 {
			<-l.out
		}
		asked := 1
		for i := range 10 * askEvery { // now the answers come at once
			for ; asked > 0; asked-- {
				l.reported <- struct{}{}
				synctest.Wait()
			}
			time.Sleep(time.Second)
			want := 1
			if i == 0 {
				want = 2 // with what was left out
			}
			if len(l.out) != want {
				t.Fatalf("%d reports in second %d, want %d", len(l.out), i, want)
			}
			for range want {
				if (<-l.out).GetReport().GetAnswer() {
					asked++
				}
			}
		}
	})
}

func TestReportsWaitForNoAnswerOfALeaderThatGivesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, end := reporting(t, &fleetpb.Welcome{ReportIntervalMillis: 1000})
		defer end()
		for range 100 {
			if r := (<-l.out).GetReport(); r == nil || r.GetAnswer() {
				t.Fatalf("sent %v, want a report that asks for nothing", r)
			}
		}
	})
}

// reporting has a link report until end is called.
func reporting(t *testing.T, welcome *fleetpb.Welcome) (l *link, end func()) {
	t.Helper()
	l = newLink(nil, nil, 1, slog.New(slog.DiscardHandler))
	go l.reportEvery(t.Context(), &recorder{}, welcome)
	return l, func() { close(l.done) }
}

package probe

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

var errApp = errors.New("the app is ill")

// TestOneQuestionAtATime: however many callers ask, the app is asked once, and all get
// its answer. A later caller gets a new one.
func TestOneQuestionAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, release := 0, make(chan struct{})
		q := &question{put: func(context.Context) error {
			asked++
			<-release
			return errApp
		}}
		answers := make(chan error, 10)
		for range cap(answers) {
			go func() { answers <- q.ask(t.Context()) }()
		}
		synctest.Wait()
		if asked != 1 {
			t.Fatalf("the app is asked %d times at a time", asked)
		}
		close(release)
		for range cap(answers) {
			if err := <-answers; !errors.Is(err, errApp) {
				t.Errorf("answer %v, want %v", err, errApp)
			}
		}
		if err := q.ask(t.Context()); !errors.Is(err, errApp) || asked != 2 {
			t.Errorf("later: answer %v, asked %d times", err, asked)
		}
	})
}

// TestQuestionIsWithdrawn when the last caller is gone, not when the first is.
func TestQuestionIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rounds := make(chan context.Context, 2)
		q := &question{put: func(ctx context.Context) error {
			rounds <- ctx
			<-ctx.Done()
			return ctx.Err()
		}}
		first, leaveFirst := context.WithCancel(t.Context())
		second, leaveSecond := context.WithCancel(t.Context())
		go func() { _ = q.ask(first) }()
		synctest.Wait()
		go func() { _ = q.ask(second) }()
		synctest.Wait()
		asking := <-rounds

		leaveFirst()
		synctest.Wait()
		if asking.Err() != nil {
			t.Fatal("the question was withdrawn while somebody waits")
		}
		leaveSecond()
		synctest.Wait()
		if asking.Err() == nil {
			t.Fatal("the question stands although nobody waits")
		}
		third, leaveThird := context.WithCancel(t.Context())
		go func() { _ = q.ask(third) }()
		synctest.Wait()
		if again := <-rounds; again.Err() != nil {
			t.Error("who comes later gets the withdrawn question")
		}
		leaveThird()
		synctest.Wait()
	})
}

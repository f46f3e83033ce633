package podauth

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"
)

func TestRememberedAnswersAreBounded(t *testing.T) {
	now, good := time.Now(), sha256.Sum256([]byte("good"))
	for name, err := range map[string]error{"accepted": nil, "refused": ErrUnauthenticated} {
		a := newAnswers()
		for i := range maxTokens + 100 {
			a.add(sha256.Sum256(fmt.Append(nil, i)), answer{err: err, until: now.Add(time.Hour)}, now)
		}
		if n := len(a.accepted) + len(a.refused); n != maxTokens {
			t.Errorf("%d answers that are %s are held, want %d", n, name, maxTokens)
		}
	}
	a := newAnswers()
	a.add(good, answer{until: now.Add(time.Hour)}, now)
	for i := range 2 * maxTokens {
		a.add(sha256.Sum256(fmt.Append(nil, i)), answer{err: ErrUnauthenticated, until: now.Add(time.Hour)}, now)
	}
	if known, ok := a.of(good, now); !ok || known.err != nil {
		t.Error("bad tokens make a good one be forgotten")
	}
}

func TestReviewTurns(t *testing.T) {
	now, turns := time.Unix(0, 0), newReviewTurns()
	reviews := func(at time.Time) (n int) {
		for n <= reviewBurst && turns.begin("uid", at) {
			turns.end("uid")
			n++
		}
		return n
	}
	for _, tc := range []struct {
		pause time.Duration
		want  int
	}{{0, reviewBurst}, {reviewEvery - 1, 0}, {1, 1}, {3 * reviewEvery, 3}, {time.Hour, reviewBurst}} {
		now = now.Add(tc.pause)
		if n := reviews(now); n != tc.want {
			t.Errorf("%d reviews after %s, want %d", n, tc.pause, tc.want)
		}
	}
	for i := range 10 * manyPods { // each as good as new when the next thousand come
		uid := fmt.Sprint(i)
		turns.begin(uid, now)
		turns.end(uid)
		now = now.Add(reviewEvery / manyPods)
	}
	if n := len(turns.byPod); n > 3*manyPods {
		t.Errorf("%d pods are remembered", n)
	}
}

package coordinator

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestLimitsThatMatchNothingAreObserved once requests came for an hour, until one is matched in any pod.
func TestLimitsThatMatchNothingAreObserved(t *testing.T) {
	withPair(t, limited("shop", 1, 10, limiter.Second), func(t *testing.T, l *leader, a, b *sidecar) {
		for _, step := range []struct {
			says      *sidecar
			matched   bool
			unmatched time.Duration
			isNew     bool
			want      []string
		}{
			{says: a, unmatched: time.Hour - time.Microsecond},
			{says: a, unmatched: time.Hour, isNew: true, want: []string{"all"}},
			{says: a, unmatched: 2 * time.Hour, want: []string{"all"}},
			{says: b, unmatched: 0, want: []string{"all"}},
			{says: b, matched: true, isNew: true},
			{says: a, unmatched: 3 * time.Hour},
			{says: b, unmatched: time.Minute, isNew: true, want: []string{"all"}}, // of another generation
			{says: a, matched: true, isNew: true},
		} {
			l.drained()
			r := counted(0, 0)
			r.Matched, r.UnmatchedMicros = step.matched, step.unmatched.Microseconds()
			step.says.report(r)
			if isNew := l.drained(); isNew != step.isNew {
				t.Errorf("%+v: somebody is notified: %t", step, isNew)
			}
			if got := l.Observe("shop", "checkout").Unmatched; !slices.Equal(got, step.want) {
				t.Errorf("%+v: observed %q", step, got)
			}
		}
	})
}

// gathered is longer than changes in quick succession are gathered.
const gathered = 110 * time.Millisecond

// drained reports whether somebody is notified of a change since the last call.
func (l *leader) drained() (any bool) {
	for {
		select {
		case <-l.Changed():
			any = true
		case <-time.After(gathered):
			return any
		}
	}
}

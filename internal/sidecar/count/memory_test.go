package count

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// few is a Memory of few bytes.
type few struct{ bytes, taken int64 }

func (f *few) Take(n int64) bool {
	if f.taken+n > f.bytes {
		return false
	}
	f.taken += n
	return true
}

func (f *few) Give(n int64) { f.taken -= n }

// both returns the windows of two rates.
func both(a, b *limiter.Windows) *limiter.Windows {
	w := &limiter.Windows{N: 2}
	w.Open[0], w.Open[1] = a.Open[0], b.Open[0]
	return w
}

// TestKeysWithoutMemoryAreNotCountedApart, unless they have limits of their own. Their units are
// in the row, and in the most that a key that is not listed was admitted.
func TestKeysWithoutMemoryAreNotCountedApart(t *testing.T) {
	for name, w := range map[string]*limiter.Windows{"one rate": second(7), "two rates": both(second(7), windows(100, 60*limiter.Second, 0))} {
		t.Run(name, func(t *testing.T) {
			m := &few{bytes: int64(3*w.N*w.N) * (tallyBytes + 1)}
			b := NewBook(hash, m)
			l := b.Open(all, Settings{Keyed: true, MaxKeys: 100, Holders: 1, Overrides: map[string]limiter.Params{"own": {}}})
			for i := range 9 {
				l.Count(at(0), admitted(fmt.Sprint(i), 2, w))
			}
			l.Count(at(0), admitted("own", 5, w))
			row := rows(t, b, at(3), 1)[0]
			if row.GetAdmitted() != 23 || row.GetUnlisted()[0] < 2 || m.taken > m.bytes || m.taken == 0 {
				t.Errorf("%d admitted, %d unlisted, %d of %d bytes taken", row.GetAdmitted(), row.GetUnlisted()[0], m.taken, m.bytes)
			}
			if keys := row.GetKeys(); len(keys) == 0 || keys[0].GetHash() != "#own" {
				t.Errorf("keys %v, want the one with a limit of its own", keys)
			}
			b.Report(at(Keep.Seconds()+120), 1)
			if m.taken != 0 {
				t.Errorf("%d bytes are kept when the counts are forgotten", m.taken)
			}
		})
	}
}

// TestOldCountsGiveWayWhereMemoryIsShort, once a question about them is no longer expected.
func TestOldCountsGiveWayWhereMemoryIsShort(t *testing.T) {
	m := &few{bytes: 5 * (tallyBytes + 1)}
	b := NewBook(hash, m)
	l := b.Open(all, Settings{Keyed: true, MaxKeys: 100, Holders: 1})
	for i := range 5 {
		l.Count(at(0), admitted(fmt.Sprint(i), 1, second(7)))
	}
	if b.Report(at(30), 1); m.taken != m.bytes {
		t.Errorf("%d of %d bytes are taken while none is missing", m.taken, m.bytes)
	}
	l.Count(at(30), admitted("5", 1, second(37)))
	if b.Report(at(31), 1); m.taken != 0 {
		t.Errorf("%d bytes are taken for counts that are old", m.taken)
	}
	if l.Count(at(31), admitted("6", 1, second(37))); m.taken != tallyBytes+1 {
		t.Errorf("%d bytes are taken for a new key", m.taken)
	}
}

// TestALimitThatIsGoneKeepsNoMemory.
func TestALimitThatIsGoneKeepsNoMemory(t *testing.T) {
	m := &few{bytes: 1 << 20}
	b := NewBook(hash, m)
	l := b.Open(all, Settings{Keyed: true, MaxKeys: 100, Holders: 1})
	l.Count(at(0), admitted("a", 1, both(second(7), windows(100, 3600*limiter.Second, 0))))
	b.Retain(nil, at(1))
	if b.Report(at(Keep.Seconds()+2), 1); m.taken != 0 {
		t.Errorf("%d bytes are kept", m.taken)
	}
}

// TestACountTakesWhatIsTakenForIt measures what a row needs for each key.
func TestACountTakesWhatIsTakenForIt(t *testing.T) {
	const n, length = 60_000, 32
	m := &few{bytes: 1 << 40}
	l := NewBook(hash, m).Open(all, Settings{Keyed: true, MaxKeys: n, Holders: 1})
	w, now := second(7), time.Unix(0, 0)
	before := heap()
	for i := range n {
		l.Count(now, admitted(fmt.Sprintf("%0*d", length, i), 1, w))
	}
	got, taken := (heap()-before)/n, m.taken/n
	if t.Logf("%d bytes a key, %d taken", got, taken); got > taken {
		t.Errorf("%d bytes a key, more than %d which are taken", got, taken)
	}
	runtime.KeepAlive(l)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

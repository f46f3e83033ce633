package count

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/weir-dev/weir/internal/fleetpb"
)

func hottest(t *testing.T, b *Book, seconds float64) []*fleetpb.HotKey {
	t.Helper()
	return b.Report(at(seconds), 1)[0].GetHottest()
}

func TestTheHottestKeysAreReportedWhileWindowsAreOpen(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Keyed: true, MaxKeys: 100, Holders: 1})
	for i := range int64(3) {
		l.Count(at(float64(i)), admitted("a", 1, second(i)))
		l.Count(at(float64(i)), admitted("b", 2, second(i)))
		l.Count(at(float64(i)), refused("b", 7, second(i)))
	}
	want := []*fleetpb.HotKey{{Hash: "#b", Admitted: 6, Refused: 21}, {Hash: "#a", Admitted: 3}}
	for _, seconds := range []float64{2, 60, 1000} { // the rows are open, over, forgotten
		if diff := cmp.Diff(want, hottest(t, b, seconds), protocmp.Transform(), protocmp.IgnoreFields(new(fleetpb.HotKey), "admitted_per_minute", "refused_per_minute")); diff != "" {
			t.Errorf("after %v s they differ (-want +got):\n%s", seconds, diff)
		}
	}
}

func TestALimitWithoutAKeyHasNoHottest(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Holders: 1})
	l.Count(at(0), admitted("", 1, second(7)))
	if got := hottest(t, b, 0); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}

// TestTheErrorOfTheHottestKeysHolds sends a stream with many more keys than are
// kept, whose favourites change, and compares with exact counts.
func TestTheErrorOfTheHottestKeysHolds(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := NewBook(hash, nil)
		l := b.Open(all, Settings{Keyed: true, MaxKeys: 10_000, Holders: 1})
		exact := map[string]int64{}
		const windows, events = 40, 2000
		favourite := ""
		for w := range int64(windows) {
			if w%10 == 0 {
				favourite = fmt.Sprint("favourite", r.IntN(3))
			}
			for range events {
				key := fmt.Sprint(r.IntN(500) * r.IntN(3))
				if r.IntN(5) == 0 {
					key = favourite
				}
				exact[hash(key)]++
				e := admitted(key, 1, second(w))
				if r.IntN(2) == 0 {
					e.Outcome = Refused
				}
				l.Count(at(float64(w)), e)
			}
		}
		got := hottest(t, b, windows+10)
		if len(got) != reportedHottest {
			t.Fatalf("seed %d: %d keys are reported, want %d", seed, len(got), reportedHottest)
		}
		named := map[string]bool{}
		for i, k := range got {
			named[k.GetHash()] = true
			least := k.GetAdmitted() + k.GetRefused()
			if n := exact[k.GetHash()]; n < least || n > least+k.GetError() {
				t.Errorf("seed %d: %s was asked for %d times, reported as %d to %d", seed, k.GetHash(), n, least, least+k.GetError())
			}
			if i > 0 && least > got[i-1].GetAdmitted()+got[i-1].GetRefused() {
				t.Errorf("seed %d: key %d is hotter than the one before", seed, i)
			}
		}
		for key, n := range exact {
			if n > windows*events/20 && !named[key] { // a twentieth of all is surely among 20
				t.Errorf("seed %d: %s was asked for %d times and is not reported", seed, key, n)
			}
			if n > l.hottest.unseen && !kept(l, key) {
				t.Errorf("seed %d: %s was asked for %d times, more than the %d of a key that is not kept", seed, key, n, l.hottest.unseen)
			}
		}
	}
}

func kept(l *Limit, hashed string) bool {
	for _, k := range l.hottest.keys {
		if hash(k.value) == hashed {
			return true
		}
	}
	return false
}

func TestOnlyLeadersAreAboveTheFloor(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		var l leaders
		tallies := map[string]*tally{}
		for range 5000 {
			key := fmt.Sprint(r.IntN(20 + int(seed)*20))
			if tallies[key] == nil {
				tallies[key] = new(tally)
			}
			tallies[key].admitted += 1 + r.Int64N(3)
			l.note(key, tallies[key])
		}
		if len(l.keys) > maxLeaders {
			t.Fatalf("seed %d: %d leaders", seed, len(l.keys))
		}
		leads := map[string]bool{}
		for _, k := range l.keys {
			if leads[k.value] {
				t.Errorf("seed %d: %s leads twice", seed, k.value)
			}
			leads[k.value] = true
			if tallies[k.value] != k.tally {
				t.Errorf("seed %d: %s leads by the tally of another key", seed, k.value)
			}
		}
		for key, n := range tallies {
			if !leads[key] && n.offered() > l.floor {
				t.Errorf("seed %d: %s was asked for %d and does not lead, the floor being %d", seed, key, n.offered(), l.floor)
			}
		}
	}
}

// TestASketchIsBounded, and knows what it forgot.
func TestASketchIsBounded(t *testing.T) {
	s := &sketch{}
	for i := range int64(keptHottest + 2) {
		s.keys = append(s.keys, hotKey{value: fmt.Sprint(i), admitted: i + 1})
	}
	s.cut()
	if len(s.keys) != keptHottest || s.unseen != 2 {
		t.Errorf("%d keys are kept, and one that is not had up to %d", len(s.keys), s.unseen)
	}
	r := new(row)
	key := r.keys.add("new")
	key.admitted = 1_000
	r.leaders.note("new", key)
	if got := s.with([]*row{r}).keys[0]; got.value != "new" || got.missed != 2 {
		t.Errorf("a new key is %+v, which may have had 2 before", got)
	}
}

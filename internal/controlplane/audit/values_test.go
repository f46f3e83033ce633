package audit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/limiter"
)

// naming is a final row of the first second that names these counts, and leaves out as many units,
// at most each of one key.
func naming(unlisted, each int64, counts ...KeyCount) Row {
	r := Row{Windows: at(0, 100), Final: true, Keys: counts, Admitted: unlisted}
	for _, c := range counts {
		r.Admitted, r.Refused = r.Admitted+c.Admitted, r.Refused+c.Refused
	}
	r.Unlisted[0] = each
	return r
}

// shared is a fleet in one of several clusters that share the limit.
func shared(clusters int64, holders ...string) *fleet {
	return newFleetOf(Config{Generation: 1, Promise: perSecond(100, 100), Keyed: true, Clusters: clusters}, holders...)
}

// values returns what is known of the first second.
func (f *fleet) values() ValueUsage {
	return f.Values(at(0, 100).Open[0], noon, noon.Add(2*time.Second), time.Time{})
}

// answer replies to the queries that were sent since the last call.
func (f *fleet) answer(counts map[string][]KeyCount) (asked []string) {
	for _, q := range f.queries {
		for _, h := range q.Holders {
			f.Reply(h, q.ID, counts[h.PodUID()], false)
		}
		asked = append(asked, q.Hashes...)
	}
	f.queries = nil
	return asked
}

func TestValuesOfACluster(t *testing.T) {
	f := shared(4, "a", "b")
	f.report("a", naming(40, 9, KeyCount{"x", 26, 0}, KeyCount{"y", 12, 0}))
	f.report("b", naming(50, 11))
	f.pass("a", "b")
	if got := f.values(); got.Complete {
		t.Errorf("%+v is complete before the holder has answered", got)
	}
	if diff := cmp.Diff([]string{"x"}, f.answer(map[string][]KeyCount{"b": {{"x", 3, 1}}})); diff != "" {
		t.Errorf("asked for the keys beyond a quarter of the limit (-want +got):\n%s", diff)
	}
	f.pass("a", "b")
	want := ValueUsage{
		Usage:  Usage{Admitted: 128, Complete: true},
		Keys:   map[string]KeyCount{"x": {"x", 29, 1}},
		Hidden: 23, // of y at most, 12 + 11
	}
	if diff := cmp.Diff(want, f.values()); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}

	f.Inquire(at(0, 100).Open[0], []string{"y", "z"})
	if got := f.values(); got.Complete {
		t.Errorf("%+v is complete although holders have to be asked", got)
	}
	f.pass("a", "b")
	if diff := cmp.Diff([]string{"x", "y", "z"}, f.answer(map[string][]KeyCount{
		"a": {{"x", 26, 0}, {"y", 12, 0}}, "b": {{"x", 3, 1}, {"y", 5, 0}},
	})); diff != "" {
		t.Errorf("asked for what was inquired about (-want +got):\n%s", diff)
	}
	f.pass("a", "b")
	want.Keys = map[string]KeyCount{"x": {"x", 29, 1}, "y": {"y", 17, 0}, "z": {"z", 0, 0}}
	want.Hidden = 20
	if diff := cmp.Diff(want, f.values()); diff != "" {
		t.Errorf("values that were inquired about (-want +got):\n%s", diff)
	}
	if got := f.Figures(f.now); got.Verdict != Measured || got.Overshoot.Worst != 0 {
		t.Errorf("%+v of a cluster within the limit", got)
	}
}

func TestAClusterAloneAsksOnlyForKeysBeyondTheLimit(t *testing.T) {
	for clusters, want := range map[int64]int{0: 0, 1: 0, 2: 1} {
		f := shared(clusters, "a", "b")
		f.report("a", naming(0, 0, KeyCount{"x", 60, 0}))
		f.report("b", naming(20, 11))
		f.pass("a", "b")
		if len(f.queries) != want {
			t.Errorf("%d queries in one of %d clusters, want %d", len(f.queries), clusters, want)
		}
	}
}

func TestAHolderThatIsSilentLeavesValuesIncomplete(t *testing.T) {
	f := shared(2, "a", "b")
	f.report("a", naming(0, 0, KeyCount{"x", 30, 0}))
	f.Lose(holder("b"), f.now)
	f.pass("a")
	if got := f.values(); got.Complete {
		t.Errorf("%+v is complete without a holder", got)
	}
}

func TestNobodyCountedValues(t *testing.T) {
	f := shared(2, "a")
	f.pass("a")
	f.pass("a")
	f.pass("a")
	f.now = f.now.Add(3 * time.Second)
	f.pass("a")
	f.pass("a")
	open := limiter.OpenWindow{Rate: at(0, 100).Open[0].Rate, Index: at(0, 100).Open[0].Index + 1}
	over := f.now.Add(-2 * time.Second)
	if got := f.Values(open, over, over, time.Time{}); got.Hidden != 0 || len(got.Keys) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestAddValues(t *testing.T) {
	usage := func(hidden int64, keys ...KeyCount) ValueUsage {
		u := ValueUsage{Usage: Usage{Admitted: 1, Refused: 2, Complete: true}, Keys: map[string]KeyCount{}, Hidden: hidden}
		for _, k := range keys {
			u.Keys[k.Hash] = k
		}
		return u
	}
	for name, tc := range map[string]struct{ a, b, want ValueUsage }{
		"both name it":        {usage(1, KeyCount{"x", 2, 3}), usage(4, KeyCount{"x", 5, 6}), usage(5, KeyCount{"x", 7, 9})},
		"one has counted all": {usage(1, KeyCount{"x", 2, 3}), usage(0), usage(1, KeyCount{"x", 2, 3})},
		"one does not name":   {usage(1, KeyCount{"x", 9, 3}), usage(4), usage(13)},
		"the other does not":  {usage(4), usage(1, KeyCount{"x", 9, 3}), usage(13)},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.Usage = Usage{Admitted: 2, Refused: 4, Complete: true}
			tc.a.Add(tc.b)
			if diff := cmp.Diff(tc.want, tc.a); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	incomplete := usage(0)
	incomplete.Complete = false
	all := usage(0)
	if all.Add(incomplete); all.Complete {
		t.Error("the sum with what is not complete is")
	}
}

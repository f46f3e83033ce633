package audit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestTheOpenWindow is the sum of what holders reported of it so far.
func TestTheOpenWindow(t *testing.T) {
	minute := limiter.Rate{Limit: 300, Window: 60 * limiter.Second}
	rates := Promise{Rates: []limiter.Rate{{Limit: 100, Window: limiter.Second}, minute}, Most: []int64{100, 300}}
	row := func(second, admitted int64) Row {
		w := at(second, 100)
		w.Open[1], w.N = limiter.OpenWindow{Rate: minute, Index: noon.Unix() / 60}, 2
		return Row{Windows: w, Admitted: admitted, Final: second == 0}
	}
	rows := func(f *fleet) {
		f.report("a", row(0, 60), row(1, 5))
		f.report("b", row(1, 40))
	}
	want := &OpenWindow{Began: noon, Ends: noon.Add(time.Minute), Limit: 300, Used: 105}
	for name, tc := range map[string]struct {
		config Config
		say    func(*fleet)
		want   *OpenWindow
	}{
		"of several rates the longest": {Config{Generation: 1, Promise: rates}, rows, want},
		"nobody reported":              {Config{Generation: 1, Promise: rates}, func(*fleet) {}, nil},
		"keys are named when it ends":  {Config{Generation: 1, Promise: rates, Keyed: true}, rows, nil},
		"it is over": {Config{Generation: 1, Promise: perSecond(100, 100)}, func(f *fleet) {
			f.report("a", Row{Windows: at(0, 100), Admitted: 60, Final: true})
			f.report("b", Row{Windows: at(0, 100), Admitted: 60, Final: true})
			f.pass("a", "b")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleetOf(tc.config, "a", "b")
			f.now = noon.Add(1500 * time.Millisecond)
			tc.say(f)
			got := f.Figures(f.now).Open
			if diff := cmp.Diff(tc.want, got, cmp.Transformer("utc", func(t time.Time) time.Time { return t.UTC() })); diff != "" {
				t.Errorf("open window (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUsageOfAWindow sums up the counts of all holders, in whatever store.
func TestUsageOfAWindow(t *testing.T) {
	begun := noon.Add(-10 * time.Second)
	counted := func(f *fleet) {
		f.report("a", final(0, 60, 3))
		f.report("b", final(0, 30, 4))
		f.pass("a", "b")
	}
	for name, tc := range map[string]struct {
		known time.Time // when the audit began
		say   func(*fleet)
		since time.Time
		want  Usage
	}{
		"all of it":                   {begun, counted, begun, Usage{Admitted: 90, Refused: 7, Complete: true}},
		"not all holders were known":  {noon.Add(5 * time.Second), counted, begun, Usage{Admitted: 90, Refused: 7}},
		"it was counted elsewhere":    {begun, counted, noon.Add(5 * time.Second), Usage{}},
		"a holder is still to report": {begun, func(f *fleet) { f.report("a", final(0, 60, 3)); f.pass("a") }, begun, Usage{Admitted: 60, Refused: 3}},
		"by two stores": {begun, func(f *fleet) {
			counted(f)
			f.moveTo(second)
			f.report("a", by(second, final(0, 5, 1)))
			f.report("b", by(second, final(0, 6, 1)))
			f.pass("a", "b")
		}, begun, Usage{Admitted: 101, Refused: 9, Complete: true}},
		"another one": {begun, func(f *fleet) {
			f.report("a", final(1, 60, 3))
			f.report("b", final(1, 30, 4))
			f.pass("a", "b")
		}, begun, Usage{}},
		"surely none": {begun, func(f *fleet) {
			for range 3 {
				f.pass("a", "b")
			}
		}, begun, Usage{Complete: true}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fleet{Limit: New(time.Second, Config{Generation: 1, Promise: perSecond(100, 100)}, tc.known), now: noon.Add(-3 * time.Second)}
			for _, name := range []string{"a", "b"} {
				f.Join(holder(name), f.now)
			}
			for range 4 {
				f.pass("a", "b")
			}
			tc.say(f)
			if got := f.Usage(at(0, 100).Open[0], noon.Add(time.Second), noon.Add(time.Second), tc.since); got != tc.want {
				t.Errorf("usage = %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestHottest(t *testing.T) {
	f := newFleet(true, 100, "a", "b")
	count := func(hash string, admitted, refused int64) HotKey {
		return HotKey{KeyCount: KeyCount{hash, admitted, refused}}
	}
	hot := func(name string, keys ...HotKey) {
		f.Report(holder(name), Report{Generation: 1, Hottest: keys}, f.now)
	}
	many := []HotKey{count("x", 50, 0), count("y", 10, 45)}
	for i := range 12 {
		many = append(many, count(string(rune('a'+i)), 1, 0))
	}
	late := HotKey{KeyCount{"late", 2, 1}, 1.6, 0.3}
	many = append(many, late)
	hot("a", count("old", 1000, 0))
	hot("a", many...) // what was said before does not count
	hot("b", count("x", 3, 1), HotKey{KeyCount{"late", 1, 3}, 0.1, 2})
	got := f.Figures(f.now).Hottest
	want := []HotKey{{KeyCount{"late", 3, 4}, 1.7, 2.3}, count("y", 10, 45), count("x", 53, 1)}
	if len(got) != shownHottest {
		t.Fatalf("%d keys are shown, want %d", len(got), shownHottest)
	}
	if diff := cmp.Diff(want, got[:3], cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("hottest (-want +got):\n%s", diff)
	}
	if got[3].Hash != "a" || got[9].Hash != "g" {
		t.Errorf("keys alike hot are not in order: %v", got)
	}
	f.Lose(holder("a"), f.now)
	if diff := cmp.Diff([]HotKey{{KeyCount{"late", 1, 3}, 0.1, 2}, count("x", 3, 1)}, f.Figures(f.now).Hottest); diff != "" {
		t.Errorf("after a holder left (-want +got):\n%s", diff)
	}

	unkeyed := newFleet(false, 100, "a")
	unkeyed.Report(holder("a"), Report{Generation: 1, Hottest: many}, unkeyed.now)
	if got := unkeyed.Figures(unkeyed.now).Hottest; got != nil {
		t.Errorf("a limit without a key shows %v", got)
	}
}

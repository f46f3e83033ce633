package audit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKeys(t *testing.T) {
	keys := func(counts ...KeyCount) Row {
		r := Row{Windows: at(0, 100), Final: true, Keys: counts}
		for _, c := range counts {
			r.Admitted += c.Admitted
			r.Refused += c.Refused
		}
		return r
	}
	unlisted := func(r Row, admitted int64) Row {
		r.Admitted += admitted
		return r
	}
	atMost := func(r Row, each int64) Row {
		r.Unlisted[0] = each
		return r
	}
	tests := map[string]struct {
		rows        map[string]Row // by holder
		replies     map[string][]KeyCount
		wantAsked   []string
		wantHashes  []string
		wantVerdict Verdict
		wantWorst   int64
	}{
		"listed keys that no other holder can add to need no query": {
			rows:        map[string]Row{"a": keys(KeyCount{"x", 90, 0}), "b": keys(KeyCount{"y", 20, 0})},
			wantVerdict: Measured,
		},
		"a holder is asked for keys that it did not list": {
			rows: map[string]Row{
				"a": keys(KeyCount{"x", 90, 0}),
				"b": unlisted(keys(), 20),
			},
			replies:     map[string][]KeyCount{"b": {{"x", 15, 0}}},
			wantAsked:   []string{"b"},
			wantHashes:  []string{"x"},
			wantVerdict: Exceeded,
			wantWorst:   5,
		},
		"keys that cannot exceed the limit are not asked for": {
			rows: map[string]Row{
				"a": keys(KeyCount{"x", 60, 0}),
				"b": unlisted(keys(), 20),
			},
			wantVerdict: Measured,
		},
		"a key that nobody lists and that may exceed the limit leaves the window unknown": {
			rows: map[string]Row{
				"a": atMost(unlisted(keys(), 300), 60),
				"b": atMost(unlisted(keys(), 300), 50),
			},
			wantVerdict: ReportsMissing,
		},
		"many keys that nobody lists cannot exceed the limit when none has much": {
			rows: map[string]Row{
				"a": atMost(unlisted(keys(KeyCount{"x", 60, 0}), 300), 50),
				"b": atMost(unlisted(keys(), 300), 40),
			},
			wantVerdict: Measured,
		},
		"what a holder does not say of unlisted keys may all be of one": {
			rows: map[string]Row{
				"a": atMost(unlisted(keys(), 300), 50),
				"b": unlisted(keys(), 60),
			},
			wantVerdict: ReportsMissing,
		},
		"the worst key counts": {
			rows: map[string]Row{
				"a": keys(KeyCount{"x", 60, 0}, KeyCount{"y", 80, 0}),
				"b": keys(KeyCount{"x", 60, 0}, KeyCount{"y", 75, 0}),
			},
			wantVerdict: Exceeded,
			wantWorst:   55,
		},
		"a reply of not knowing leaves the window unknown": {
			rows: map[string]Row{
				"a": keys(KeyCount{"x", 90, 0}),
				"b": unlisted(keys(), 20),
			},
			replies:     map[string][]KeyCount{"b": nil},
			wantAsked:   []string{"b"},
			wantHashes:  []string{"x"},
			wantVerdict: ReportsMissing,
		},
		"no reply leaves the window waiting": {
			rows: map[string]Row{
				"a": keys(KeyCount{"x", 90, 0}),
				"b": unlisted(keys(), 20),
			},
			wantAsked:   []string{"b"},
			wantHashes:  []string{"x"},
			wantVerdict: Starting,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFleet(true, 100, "a", "b")
			for name, row := range tc.rows {
				f.Report(holder(name), Report{Generation: 1, Totals: Totals{Admitted: row.Admitted}, Rows: []Row{row}}, f.now)
			}
			f.pass("a", "b")
			var asked, hashes []string
			for _, q := range f.queries {
				hashes = append(hashes, q.Hashes...)
				if diff := cmp.Diff(at(0, 100), q.Window); diff != "" {
					t.Errorf("asked for the keys of (-want +got):\n%s", diff)
				}
				for _, h := range q.Holders {
					asked = append(asked, h.PodUID())
					if reply, ok := tc.replies[h.PodUID()]; ok {
						f.Reply(h, q.ID, reply, reply == nil)
					}
				}
			}
			f.pass("a", "b")
			if diff := cmp.Diff(tc.wantAsked, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantHashes, hashes); diff != "" {
				t.Errorf("hashes (-want +got):\n%s", diff)
			}
			got := f.Figures(f.now)
			if got.Verdict != tc.wantVerdict {
				t.Errorf("verdict = %v, want %v", got.Verdict, tc.wantVerdict)
			}
			if got.Overshoot != nil && got.Overshoot.Worst != tc.wantWorst {
				t.Errorf("worst overshoot = %d, want %d", got.Overshoot.Worst, tc.wantWorst)
			}
		})
	}
}

func TestTooManyKeysLeaveTheWindowUnknown(t *testing.T) {
	f := newFleet(true, 1, "a", "b")
	row := Row{Windows: at(0, 1), Final: true}
	for i := range maxHashes + 1 {
		row.Keys = append(row.Keys, KeyCount{Hash: string(rune('a' + i)), Admitted: 1})
		row.Admitted++
	}
	f.report("a", row)
	f.report("b", Row{Windows: at(0, 1), Final: true, Admitted: 5})
	f.pass("a", "b")
	for _, q := range f.queries {
		if len(q.Hashes) > maxHashes {
			t.Errorf("asked for %d keys, at most %d fit", len(q.Hashes), maxHashes)
		}
		f.Reply(holder("b"), q.ID, nil, false)
	}
	f.pass("a", "b")
	if got := f.Figures(f.now).Verdict; got != ReportsMissing {
		t.Errorf("verdict = %v, want %v", got, ReportsMissing)
	}
}

package count

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
)

var (
	all   = Name{Namespace: "shop", Policy: "checkout", Limit: "all"}
	start = time.Now()
)

// at returns the instant that many seconds after the start.
func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func hash(value string) string { return "#" + value }

// second returns the windows of a limit of 10 a second.
func second(index int64) *limiter.Windows { return windows(10, limiter.Second, index) }

func windows(limit int64, length limiter.Micros, index int64) *limiter.Windows {
	w := &limiter.Windows{N: 1}
	w.Open[0] = limiter.OpenWindow{Rate: limiter.Rate{Limit: limit, Window: length}, Index: index}
	return w
}

func admitted(value string, cost int64, w *limiter.Windows) Event {
	return Event{Outcome: Admitted, Value: value, Cost: cost, Windows: w}
}

func refused(value string, cost int64, w *limiter.Windows) Event {
	return Event{Outcome: Refused, Value: value, Cost: cost, Windows: w}
}

// rows returns the only limit's rows of a report.
func rows(t *testing.T, b *Book, now time.Time, session uint64) []*fleetpb.WindowReport {
	t.Helper()
	reports := b.Report(now, session)
	if len(reports) != 1 {
		t.Fatalf("%d reports, want 1", len(reports))
	}
	return reports[0].GetWindows()
}

func wantRows(t *testing.T, got []*fleetpb.WindowReport, want ...*fleetpb.WindowReport) {
	t.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(&fleetpb.WindowReport{}, "age_micros")); diff != "" {
		t.Errorf("rows differ (-want +got):\n%s", diff)
	}
}

func window1(index int64) []*fleetpb.Window {
	return []*fleetpb.Window{{Rate: &fleetpb.Rate{Limit: 10, WindowMicros: 1e6}, Index: index}}
}

func TestRowsAreCumulativeAndThenFinal(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Holders: 1})
	l.Count(at(0), admitted("", 2, second(7)))
	wantRows(t, rows(t, b, at(0.1), 1), &fleetpb.WindowReport{Windows: window1(7), Admitted: 2})
	wantRows(t, rows(t, b, at(0.2), 1)) // nothing new
	l.Count(at(0.3), admitted("", 1, second(7)))
	l.Count(at(0.4), refused("", 5, second(7)))
	wantRows(t, rows(t, b, at(0.5), 1), &fleetpb.WindowReport{Windows: window1(7), Admitted: 3, Refused: 5})
	final := &fleetpb.WindowReport{Windows: window1(7), Admitted: 3, Refused: 5, Final: true}
	wantRows(t, rows(t, b, at(3), 1), final)
	wantRows(t, rows(t, b, at(4), 1))
	wantRows(t, rows(t, b, at(5), 2), final) // another session is sent all again
}

// TestWindowsOfTwoStoresAreNotAdded moves a limit to a store with a window of the same index.
func TestWindowsOfTwoStoresAreNotAdded(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Keyed: true, MaxKeys: 10, Holders: 1})
	w := second(7)
	for i, since := range []limiter.Instant{0, 42} {
		e := admitted("a", 10-int64(i), w)
		e.Since = since
		l.Count(at(0.1), e)
		l.Correct(e, -1)
	}
	row := func(n, since int64) *fleetpb.WindowReport {
		return &fleetpb.WindowReport{
			Windows: window1(7), Final: true, Admitted: n, SinceMicros: since,
			Unlisted: []int64{n},
		}
	}
	wantRows(t, rows(t, b, at(3), 1), row(9, 0), row(8, 42))
	for since, want := range map[int64]int64{0: 9, 42: 8} {
		got := b.Audit(&fleetpb.AuditQuery{Namespace: all.Namespace, Policy: all.Policy, Limit: all.Limit, Windows: window1(7), Hashes: []string{"#a"}, SinceMicros: since})
		if n := got.GetKeys()[0].GetAdmitted(); n != want {
			t.Errorf("since %d the key was admitted %d, want %d", since, n, want)
		}
	}
}

func TestAllIsFinalAtTheEnd(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Keyed: true, MaxKeys: 10, Holders: 1})
	l.Count(at(0), refused("a", 2, second(7)))
	rows(t, b, at(0.1), 1)
	b.Finish()
	wantRows(t, rows(t, b, at(0.2), 1), &fleetpb.WindowReport{
		Windows: window1(7), Final: true, Refused: 2, Keys: []*fleetpb.KeyCount{{Hash: "#a", Refused: 2}},
		Unlisted: []int64{0},
	})
}

func TestALateEventStillCounts(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Holders: 1})
	l.Count(at(0), admitted("", 1, second(7)))
	rows(t, b, at(3), 1)
	l.Count(at(3), admitted("", 1, second(7)))
	wantRows(t, rows(t, b, at(4), 1), &fleetpb.WindowReport{Windows: window1(7), Admitted: 2, Final: true})
}

func TestAWindowEndsNoLaterThanTheDecisionSays(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Holders: 1})
	e := admitted("", 1, windows(10, 3600*limiter.Second, 7))
	e.EndsIn = time.Second
	l.Count(at(0), e)
	if r := rows(t, b, at(1), 1); r[0].GetFinal() {
		t.Error("final at its estimated end, with events still on their way")
	}
	if r := rows(t, b, at(3), 1); len(r) != 1 || !r[0].GetFinal() {
		t.Errorf("not final after its end: %v", r)
	}
}

func TestLocalAdmissionsAreReported(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Holders: 1})
	e := admitted("", 4, second(7))
	e.Local, e.LocalShare = true, 5
	l.Count(at(0), e)
	e.Outcome = FailedOpen
	l.Count(at(0), e)
	l.Count(at(0), admitted("", 1, second(7)))
	wantRows(t, rows(t, b, at(0), 1), &fleetpb.WindowReport{Windows: window1(7), Admitted: 9, Local: 8, LocalShare: 5})
}

func TestTheLargerLimitOfAnEditStands(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Holders: 1})
	l.Count(at(0), admitted("", 8, windows(10, limiter.Second, 7)))
	l.Count(at(0), admitted("", 1, windows(3, limiter.Second, 7)))
	wantRows(t, rows(t, b, at(0), 1), &fleetpb.WindowReport{Windows: window1(7), Admitted: 9})
}

func TestEventsWithoutWindowsAreInTheTotals(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Generation: 4, Holders: 1})
	l.Count(at(0), Event{Outcome: FailedOpen, Cost: 3, Local: true})
	l.Count(at(0), Event{Outcome: FailedClosed, Cost: 2, Local: true})
	l.Count(at(0), Event{Outcome: KeyMissing})
	want := []*fleetpb.LimitReport{{
		Namespace: "shop", Policy: "checkout", Limit: "all", Generation: 4, AdmittedTotal: 3, UnplacedTotal: 3, RefusedTotal: 2, PlacedTotal: new(int64(0)),
	}}
	if diff := cmp.Diff(want, b.Report(at(0), 1), protocmp.Transform()); diff != "" {
		t.Errorf("report differs (-want +got):\n%s", diff)
	}
	for o, n := range map[Outcome]uint64{FailedOpen: 1, FailedClosed: 1, KeyMissing: 1, Admitted: 0} {
		if got := l.Requests(o); got != n {
			t.Errorf("%d requests were %v, want %d", got, o, n)
		}
	}
}

func TestKeysThatMatter(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Keyed: true, MaxKeys: 100, Holders: 4})
	l.Count(at(0), admitted("within", 2, second(7)))  // 4 · 2 ≤ 10
	l.Count(at(0), admitted("beyond", 3, second(7)))  // 4 · 3 > 10
	l.Count(at(0), admitted("limited", 1, second(7))) // also refused
	l.Count(at(0), refused("limited", 9, second(7)))
	if r := rows(t, b, at(0), 1); len(r[0].GetKeys()) > 0 {
		t.Errorf("keys of an open window were reported: %v", r)
	}
	wantRows(t, rows(t, b, at(3), 1), &fleetpb.WindowReport{
		Windows: window1(7), Final: true, Admitted: 6, Refused: 9,
		Keys:     []*fleetpb.KeyCount{{Hash: "#beyond", Admitted: 3}, {Hash: "#limited", Admitted: 1, Refused: 9}},
		Unlisted: []int64{2},
	})
}

// TestAKeyIsHotByTheMostHolders: a key that is spread over four holders is beyond its
// part of the limit even if two of them are gone when the window ends.
func TestAKeyIsHotByTheMostHolders(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Keyed: true, MaxKeys: 100, Holders: 4})
	l.Count(at(0), admitted("spread", 3, second(7)))
	b.SetHolders("shop", "checkout", 2)
	wantRows(t, rows(t, b, at(3), 1), &fleetpb.WindowReport{
		Windows: window1(7), Final: true, Admitted: 3,
		Keys: []*fleetpb.KeyCount{{Hash: "#spread", Admitted: 3}}, Unlisted: []int64{0},
	})
}

// TestAKeyIsHotByHoldersThatCameLater: more holders than there were when it was counted.
func TestAKeyIsHotByHoldersThatCameLater(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Keyed: true, MaxKeys: 100, Holders: 1})
	l.Count(at(0), admitted("spread", 3, second(7)))
	b.SetHolders("shop", "checkout", 4)
	wantRows(t, rows(t, b, at(3), 1), &fleetpb.WindowReport{
		Windows: window1(7), Final: true, Admitted: 3,
		Keys: []*fleetpb.KeyCount{{Hash: "#spread", Admitted: 3}}, Unlisted: []int64{0},
	})
}

// TestAKeyIsHotByTheClustersThatShareIt: it is beyond its part in one of them.
func TestAKeyIsHotByTheClustersThatShareIt(t *testing.T) {
	for clusters, named := range map[int64]bool{0: false, 1: false, 2: false, 4: true} {
		b := NewBook(hash, nil)
		l := b.Open(all, Settings{Keyed: true, MaxKeys: 100, Holders: 1, Clusters: clusters})
		l.Count(at(0), admitted("spread", 3, second(7)))
		if got := rows(t, b, at(3), 1); len(got) != 1 || (len(got[0].GetKeys()) == 1) != named {
			t.Errorf("in one of %d clusters: %v", clusters, got)
		}
	}
}

// TestOneKeyAtLeastIsCountedApart, whatever the settings say.
func TestOneKeyAtLeastIsCountedApart(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Keyed: true, Holders: 1})
	l.Count(at(0), admitted("a", 3, second(7)))
	q := &fleetpb.AuditQuery{Namespace: "shop", Policy: "checkout", Limit: "all", Windows: window1(7), Hashes: []string{"#a"}}
	if got := b.Audit(q); got.GetUnknown() || len(got.GetKeys()) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestAdmissionsOfAnUnlistedKeyAreReported(t *testing.T) {
	both := windows(10, limiter.Second, 7)
	both.N, both.Open[1] = 2, limiter.OpenWindow{Rate: limiter.Rate{Limit: 100, Window: 60 * limiter.Second}}
	next := *both
	next.Open[0].Index++
	for name, tc := range map[string]struct {
		maxKeys int
		events  []Event
		want    []int64 // of the last row
	}{
		"nothing, when every key is listed": {10, []Event{refused("a", 1, second(7))}, []int64{0}},
		"the most of one":                   {10, []Event{admitted("a", 3, second(7)), admitted("b", 2, second(7))}, []int64{3}},
		"all of those not counted apart": {
			1, []Event{admitted("a", 2, second(7)), admitted("b", 2, second(7)), admitted("c", 3, second(7))}, []int64{5},
		},
		"over all rows of a longer window": {10, []Event{admitted("a", 3, both), admitted("a", 2, &next)}, []int64{2, 5}},
		"the whole window, when a key was not counted apart in it": {
			1, []Event{admitted("a", 3, both), admitted("b", 2, &next)}, []int64{2, 5},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBook(hash, nil)
			l := b.Open(all, Settings{Keyed: true, MaxKeys: tc.maxKeys, Holders: 1})
			for _, e := range tc.events {
				l.Count(at(0), e)
			}
			got := rows(t, b, at(10), 1)
			if diff := cmp.Diff(tc.want, got[len(got)-1].GetUnlisted()); diff != "" {
				t.Errorf("unlisted (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKeysBeyondTheTableAreCounted: hot keys that a report has no room for
// count as unlisted.
func TestKeysBeyondTheTableAreCounted(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Keyed: true, MaxKeys: 2 * maxHotKeys, Holders: 4})
	for i := range maxHotKeys + 1 {
		l.Count(at(0), admitted(fmt.Sprint(i), 9, second(7)))
	}
	if r := rows(t, b, at(3), 1)[0]; len(r.GetKeys()) != maxHotKeys || r.GetUnlisted()[0] != 9 {
		t.Errorf("%d keys are listed, of others %v were admitted", len(r.GetKeys()), r.GetUnlisted())
	}
}

// TestShortWindowsAreReportedBeforeTheyAreForgotten: each window has as many keys as
// are counted apart, and every one of them is reported in full.
func TestShortWindowsAreReportedBeforeTheyAreForgotten(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Keyed: true, MaxKeys: 10, Holders: 1})
	final := map[int64]bool{}
	for i := range int64(20) {
		for k := range 10 {
			l.Count(at(float64(i)), admitted(fmt.Sprint(k), 1, second(i)))
		}
		for _, r := range rows(t, b, at(float64(i)+0.5), 1) {
			final[r.GetWindows()[0].GetIndex()] = r.GetFinal()
		}
	}
	for i := range int64(17) {
		if !final[i] {
			t.Errorf("window %d was forgotten before it was reported as final", i)
		}
	}
}

func TestOnlyTheMostRefusedKeysFit(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Keyed: true, MaxKeys: 100, Holders: 1})
	for i := range int64(20) {
		l.Count(at(0), refused(fmt.Sprint(i), i+1, second(7)))
	}
	r := rows(t, b, at(3), 1)[0]
	if len(r.GetKeys()) != maxRefusedKeys || r.GetKeys()[0].GetHash() != "#19" {
		t.Errorf("got %v", r)
	}
}

// TestAKeyIsHotInALongWindow: in each second the key stays within its part of
// the second's limit, and over the minute it does not.
func TestAKeyIsHotInALongWindow(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Keyed: true, MaxKeys: 100, Holders: 2})
	both := func(second int64) *limiter.Windows {
		w := windows(10, limiter.Second, second)
		w.N = 2
		w.Open[1] = limiter.OpenWindow{Rate: limiter.Rate{Limit: 20, Window: 60 * limiter.Second}, Index: 0}
		return w
	}
	for i := range int64(4) {
		l.Count(at(float64(i)), admitted("gold", 4, both(i)))
	}
	var hot int
	for _, r := range rows(t, b, at(10), 1) {
		hot += len(r.GetKeys())
	}
	if hot == 0 {
		t.Error("16 of 20 by one of two holders was not reported")
	}
	minute := []*fleetpb.Window{{Rate: &fleetpb.Rate{Limit: 20, WindowMicros: 60e6}}}
	reply := b.Audit(&fleetpb.AuditQuery{
		Id: 1, Namespace: "shop", Policy: "checkout", Limit: "all", Windows: minute, Hashes: []string{"#gold"},
	})
	want := &fleetpb.AuditReply{Id: 1, Keys: []*fleetpb.KeyCount{{Hash: "#gold", Admitted: 16}}}
	if diff := cmp.Diff(want, reply, protocmp.Transform()); diff != "" {
		t.Errorf("the minute's counts differ (-want +got):\n%s", diff)
	}
}

func TestAudit(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Keyed: true, MaxKeys: 2, Holders: 1})
	l.Count(at(0), admitted("a", 3, second(7)))
	l.Count(at(0), refused("b", 4, second(7)))
	for i := range int64(3) {
		l.Count(at(1), admitted(fmt.Sprint(i), 1, second(8)))
	}
	query := func(limit string, w []*fleetpb.Window, hashes ...string) *fleetpb.AuditQuery {
		return &fleetpb.AuditQuery{Id: 5, Namespace: "shop", Policy: "checkout", Limit: limit, Windows: w, Hashes: hashes}
	}
	for name, tc := range map[string]struct {
		query *fleetpb.AuditQuery
		want  *fleetpb.AuditReply
	}{
		"keys it saw and one it did not": {
			query("all", window1(7), "#a", "#b", "#z"),
			&fleetpb.AuditReply{Id: 5, Keys: []*fleetpb.KeyCount{{Hash: "#a", Admitted: 3}, {Hash: "#b", Refused: 4}}},
		},
		"a window it let nothing through in": {query("all", window1(9), "#a"), &fleetpb.AuditReply{Id: 5}},
		"a limit it does not know":           {query("other", window1(7), "#a"), &fleetpb.AuditReply{Id: 5, Unknown: true}},
		"no window":                          {query("all", nil, "#a"), &fleetpb.AuditReply{Id: 5, Unknown: true}},
		"a key that may not be counted apart": {
			query("all", window1(8), "#0", "#2"),
			&fleetpb.AuditReply{Id: 5, Unknown: true, Keys: []*fleetpb.KeyCount{{Hash: "#0", Admitted: 1}}},
		},
		"a key counted apart where others are not": {
			query("all", window1(8), "#0"),
			&fleetpb.AuditReply{Id: 5, Keys: []*fleetpb.KeyCount{{Hash: "#0", Admitted: 1}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, b.Audit(tc.query), protocmp.Transform()); diff != "" {
				t.Errorf("reply differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestForgottenUnitsAreUnknownAndNotZero(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Keyed: true, MaxKeys: 10, Holders: 1})
	l.Count(at(0), admitted("a", 3, second(7)))
	later := at(Keep.Seconds() + 10)
	l.Count(later, admitted("a", 1, second(300)))
	b.Report(later, 1)
	for index, unknown := range map[int64]bool{6: true, 7: true, 8: false, 300: false} {
		q := &fleetpb.AuditQuery{Namespace: "shop", Policy: "checkout", Limit: "all", Windows: window1(index), Hashes: []string{"#a"}}
		if got := b.Audit(q).GetUnknown(); got != unknown {
			t.Errorf("window %d: unknown %v, want %v", index, got, unknown)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	tenth := func(i int64) *limiter.Windows { return windows(10, limiter.Second/10, i) }
	for name, windowsAt := range map[string]func(i int64) *limiter.Windows{
		"of one rate": tenth,
		"of two rates": func(i int64) *limiter.Windows {
			w := tenth(i)
			w.N, w.Open[1] = 2, limiter.OpenWindow{Rate: limiter.Rate{Limit: 1000, Window: limiter.MaxWindow}}
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewBook(hash, nil).Open(all, Settings{Keyed: true, MaxKeys: 50, Holders: 1})
			for i := range int64(3 * maxRows) { // nobody takes a report meanwhile
				for k := range 60 {
					l.Count(at(float64(i)/10), admitted(fmt.Sprint(k), 1, windowsAt(i)))
				}
			}
			keys, sums := 0, 0
			for _, r := range l.rows {
				keys += r.keys.n
			}
			for _, s := range l.sums {
				sums += s.keys.n
			}
			// Rows that are not over may always stay: those of a second.
			const most = (mostKeys + 15) * 50
			if len(l.rows) > maxRows || keys > most || len(l.byTuple) != len(l.rows) {
				t.Errorf("%d rows with %d keys are kept", len(l.rows), keys)
			}
			if sums > most || len(l.summed) != len(l.sums) {
				t.Errorf("%d sums of %d keys are kept", len(l.sums), sums)
			}
		})
	}
}

func TestRowsWithoutKeysAreBounded(t *testing.T) {
	l := NewBook(hash, nil).Open(all, Settings{Holders: 1})
	for i := range int64(3 * maxRows) { // nobody takes a report meanwhile
		l.Count(at(float64(i)/10), admitted("", 1, windows(10, limiter.Second/10, i)))
	}
	if len(l.rows) > maxRows+1 {
		t.Errorf("%d rows are kept", len(l.rows))
	}
}

func TestARemovedLimitIsKeptForAWhile(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Holders: 1})
	l.Count(at(0), admitted("", 3, second(7)))
	b.Retain(nil, at(1))
	wantRows(t, rows(t, b, at(3), 1), &fleetpb.WindowReport{Windows: window1(7), Admitted: 3, Final: true})
	if again := b.Open(all, Settings{Holders: 1}); again != l {
		t.Error("a limit that came back lost its counts")
	}
	b.Retain(nil, at(4))
	if got := b.Report(at(5+Keep.Seconds()), 1); len(got) != 0 {
		t.Errorf("still reported: %v", got)
	}
}

func TestCountingIsSafeForConcurrentUse(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Keyed: true, MaxKeys: 10, Holders: 1})
	var wait sync.WaitGroup
	for g := range 4 {
		wait.Go(func() {
			for i := range 1000 {
				w := second(int64(i / 100))
				if g%2 == 0 {
					w.N = 2
					w.Open[1] = limiter.OpenWindow{Rate: limiter.Rate{Limit: 5, Window: limiter.MaxWindow}}
				}
				l.Count(at(float64(i/100)), admitted(fmt.Sprint(i%20), 1, w))
				if i%100 == 0 {
					b.Report(at(float64(i/100)), uint64(g))
					b.SetHolders("shop", "checkout", int64(g))
					b.Audit(&fleetpb.AuditQuery{Namespace: "shop", Policy: "checkout", Limit: "all", Windows: window1(1), Hashes: []string{"#1"}})
				}
			}
		})
	}
	wait.Wait()
	if got := b.Report(at(30), 9)[0].GetAdmittedTotal(); got != 4000 {
		t.Errorf("counted %d of 4000", got)
	}
}

func BenchmarkCount(b *testing.B) {
	l := NewBook(hash, nil).Open(all, Settings{Holders: 1})
	e := admitted("", 1, second(7))
	for b.Loop() {
		l.Count(start, e)
	}
}

// TestKeysWithLimitsOfTheirOwnAreAlwaysNamed: an auditor cannot see from a sum
// which of the keys in it may have had more.
func TestKeysWithLimitsOfTheirOwnAreAlwaysNamed(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{
		Keyed: true, MaxKeys: 1, Holders: 1,
		Rates:     []limiter.Rate{{Limit: 10, Window: limiter.Second}},
		Overrides: map[string]limiter.Params{"gold": {}},
	})
	l.Count(at(0), admitted("other", 2, second(7)))
	l.Count(at(0), admitted("gold", 1, windows(100, limiter.Second, 7))) // one more than MaxKeys
	l.Count(at(0), admitted("uncounted", 3, second(7)))
	wantRows(t, rows(t, b, at(3), 1), &fleetpb.WindowReport{
		Windows: window1(7), Final: true, Admitted: 6,
		Keys: []*fleetpb.KeyCount{{Hash: "#gold", Admitted: 1}}, Unlisted: []int64{3},
	})
}

func TestTheLimitOfARowIsThatOfKeysWithoutOneOfTheirOwn(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{
		Keyed: true, MaxKeys: 10, Holders: 1,
		Rates:     []limiter.Rate{{Limit: 10, Window: limiter.Second}},
		Overrides: map[string]limiter.Params{"gold": {}},
	})
	l.Count(at(0), admitted("gold", 1, windows(100, limiter.Second, 7)))
	if got := rows(t, b, at(0), 1)[0].GetWindows()[0].GetRate().GetLimit(); got != 10 {
		t.Errorf("the row's limit is %d, want 10", got)
	}
}

func TestWindowsThatBeginAtOtherInstantsAreOthers(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Keyed: true, MaxKeys: 10, Holders: 1})
	shifted, monthly := *second(7), *second(7)
	shifted.Open[0].Offset = limiter.Second / 2
	monthly.Open[0].Window, monthly.Open[0].Monthly = limiter.MaxWindow, true
	for i, w := range []*limiter.Windows{second(7), &shifted, &monthly} {
		l.Count(at(0), admitted("a", int64(i+1), w))
	}
	want := []*fleetpb.Rate{
		{Limit: 10, WindowMicros: 1e6},
		{Limit: 10, WindowMicros: 1e6, OffsetMicros: 5e5},
		{Limit: 10, WindowMicros: int64(limiter.MaxWindow), Monthly: true},
	}
	got := rows(t, b, at(0), 1)
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i, r := range got {
		if diff := cmp.Diff(want[i], r.GetWindows()[0].GetRate(), protocmp.Transform()); diff != "" {
			t.Errorf("row %d (-want +got):\n%s", i, diff)
		}
		answer := b.Audit(&fleetpb.AuditQuery{Namespace: "shop", Policy: "checkout", Limit: "all", Windows: r.GetWindows(), Hashes: []string{"#a"}})
		if keys := answer.GetKeys(); answer.GetUnknown() || len(keys) != 1 || keys[0].GetAdmitted() != int64(i+1) {
			t.Errorf("row %d is answered with %v", i, answer)
		}
	}
}

// TestALaterWindowEndsTheOnesBefore: where grants outlive the window they are
// counted in, its end is not known from what is left of it.
func TestALaterWindowEndsTheOnesBefore(t *testing.T) {
	minute := func(index int64) *limiter.Windows { return windows(10, 60*limiter.Second, index) }
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Holders: 1, Lag: 5 * time.Second})
	final := func(seconds float64) bool { return rows(t, b, at(seconds), sessionAt(seconds))[0].GetFinal() }
	l.Count(at(0), admitted("", 1, minute(7)))
	l.Count(at(10), admitted("", 1, minute(8)))
	l.Count(at(14), admitted("", 1, minute(7))) // a credit that was granted in it
	if final(15.5) {
		t.Error("final while what it granted may be spent")
	}
	if !final(16.5) {
		t.Error("not final although a later window is open and all it granted has died")
	}
	if got := rows(t, b, at(70), 3); got[1].GetFinal() {
		t.Error("the later window is over a minute after it was first heard of, although credits of it may be alive")
	}
}

// sessionAt returns a session for each instant, so that all is sent each time.
func sessionAt(seconds float64) uint64 { return uint64(seconds * 10) }

func BenchmarkCountKeyed(b *testing.B) {
	l := NewBook(hash, nil).Open(all, Settings{Keyed: true, MaxKeys: 10_000, Holders: 1})
	keys := make([]string, 4096)
	for i := range keys {
		keys[i] = fmt.Sprint("tenant-", i)
	}
	w := second(7)
	for _, k := range keys {
		l.Count(at(0), admitted(k, 1, w))
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		l.Count(at(0), admitted(keys[i%len(keys)], 1, w))
	}
}

// TestPlacedIsTheSumOfRows as the session was sent them, and what is forgotten as it was
// last, so that the receiver misses what it was not sent.
func TestPlacedIsTheSumOfRows(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Holders: 1, Keyed: true, MaxKeys: 1})
	report := func(now float64, session uint64) (placed, sent int64) {
		r := b.Report(at(now), session)[0]
		for _, w := range r.GetWindows() {
			sent += w.GetAdmitted() + w.GetRefused()
		}
		return r.GetPlacedTotal(), sent
	}
	l.Count(at(0), admitted("a", 3, second(7)))
	l.Count(at(0), refused("a", 2, second(7)))
	if placed, sent := report(0, 1); placed != 5 || sent != 5 {
		t.Errorf("placed %d, sent %d; want 5 of both", placed, sent)
	}
	for i := range int64(8) { // crowded: the first go at once when they are over
		l.Count(at(3+2*float64(i)), admitted("a", 1, second(10+i)))
	}
	placed, sent := report(30, 2)
	if placed != 13 || sent >= 13 {
		t.Errorf("placed %d, sent %d; want 13, some of it forgotten", placed, sent)
	}
	e := admitted("a", 3, second(7))
	l.Correct(e, 4)
	if placed, _ = report(30, 2); placed != 17 {
		t.Errorf("placed %d, want 17 with what was corrected of a row that is forgotten", placed)
	}
}

func TestRowsThatWaitAreSaidTo(t *testing.T) {
	b := NewBook(hash, nil)
	l := b.Open(all, Settings{Holders: 1})
	for i := range int64(maxRowsAtOnce + 1) {
		l.Count(at(0), admitted("", 1, second(i)))
	}
	for _, want := range []bool{true, false} {
		if got := b.Report(at(0), 1)[0].GetWaiting(); got != want {
			t.Errorf("waiting = %v, want %v", got, want)
		}
	}
}

// TestUnitsAfterAForgottenRowAreInNone.
func TestUnitsAfterAForgottenRowAreInNone(t *testing.T) {
	l := NewBook(hash, nil).Open(all, Settings{Holders: 1})
	l.Count(at(0), admitted("", 1, second(7)))
	r := l.rows[0]
	if l.sweep(at(600)); r.count(new(admitted("", 1, second(7))), l.settings.Load(), 1, l.memory) {
		t.Error("a row that is forgotten counted")
	}
	l.current.Store(r)
	r.seen.Store(second(7))
	e := admitted("", 2, r.seen.Load())
	if l.Count(at(600), e); l.unplaced.Load() != 2 {
		t.Errorf("%d are in no row, want 2", l.unplaced.Load())
	}
}

func TestARowSaysHowOldItIs(t *testing.T) {
	b := NewBook(hash, nil)
	b.Open(all, Settings{Holders: 1}).Count(at(1), admitted("", 1, second(7)))
	if got := rows(t, b, at(3.5), 1)[0].GetAgeMicros(); got != 2_500_000 {
		t.Errorf("age = %dµs, want 2.5 s", got)
	}
}

package coordinator

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/fleetpb"
	counts "github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// lies reports whether the figures say that the worst overshoot is smaller than it is, or
// larger.
func lies(f audit.Figures, truth int64) bool {
	return f.Overshoot == nil && f.Verdict != audit.ReportsMissing ||
		f.Overshoot != nil && (f.Overshoot.Worst > truth || f.Overshoot.Worst < truth && !f.Overshoot.AtLeast)
}

// TestALongWindowMissesNoHolderThatWasCutOff: two rates, 1000 per second and 2000 per two minutes. One holder is cut off from the controller for 45 s in the middle of a
// long window, and admits 500 a second for 8 s of that, beginning when it was cut off: no second is over its
// limit, but the long window is. It comes back 60 s before the long window ends.
func TestALongWindowMissesNoHolderThatWasCutOff(t *testing.T) {
	for _, away := range []time.Duration{10 * time.Second, 45 * time.Second} {
		const long = 120 * limiter.Second
		rates := []limiter.Rate{{Limit: 1000, Window: limiter.Second}, {Limit: 2000, Window: long}}
		began := time.UnixMicro(15_000_000 * int64(long))
		l := audit.New(time.Second, audit.Config{Generation: 1, Promise: audit.Promise{Rates: rates}}, began.Add(-time.Hour))
		settings := counts.Settings{Generation: 1, Rates: rates, MaxKeys: 1, Holders: 2}
		type side struct {
			holder  audit.Holder
			book    *counts.Book
			limit   *counts.Limit
			session uint64
			on      bool
		}
		var sides []*side
		for _, name := range []string{"a", "b"} {
			s := &side{holder: audit.NewHolder(name, "1"), book: counts.NewBook(store.HashValue, nil), session: 1, on: true}
			s.limit = s.book.Open(counts.Name{Namespace: "n", Policy: "p", Limit: "l"}, settings)
			sides = append(sides, s)
			l.Join(s.holder, began)
		}
		a, b := sides[0], sides[1]
		cut := began.Add(15 * time.Second)
		back := cut.Add(away)
		var truth int64
		var w *limiter.Windows
		step := 0
		for now := began; now.Before(began.Add(150 * time.Second)); now = now.Add(100 * time.Millisecond) {
			step++
			at := limiter.Instant(now.UnixMicro())
			if w == nil || rates[0].WindowAt(at).Index != w.Open[0].Index {
				w = &limiter.Windows{N: 2}
				w.Open[0], w.Open[1] = rates[0].WindowAt(at), rates[1].WindowAt(at)
			}
			first := rates[1].WindowAt(at).Index == rates[1].WindowAt(limiter.Instant(began.UnixMicro())).Index
			admit := func(s *side, cost int64) {
				s.limit.Count(now, counts.Event{Outcome: counts.Admitted, Cost: cost, Windows: w, EndsIn: time.Duration(w.Open[0].End().Sub(at)) * time.Microsecond})
				if first {
					truth += cost
				}
			}
			if now.Equal(cut) {
				b.on = false
				l.Lose(b.holder, now)
			}
			if now.Equal(back) {
				b.on = true
				b.session++
				l.Join(b.holder, now)
			}
			if step%10 == 1 {
				admit(a, 1)
				admit(b, 1)
			}
			if !now.Before(cut) && now.Before(cut.Add(8*time.Second)) {
				admit(b, 50)
			}
			if step%10 == 0 {
				for _, s := range sides {
					if s.on {
						for _, in := range s.book.Report(now, s.session) {
							r, ok, errs := reportFrom(in)
							if !ok || len(errs) > 0 {
								t.Fatal(errs)
							}
							l.Report(s.holder, r, now)
						}
					}
				}
			}
			if step%5 == 0 {
				l.Advance(now)
			}
		}
		f := l.Figures(began.Add(150 * time.Second))
		if lies(f, truth-2000) {
			t.Errorf("away %v: verdict %d, overshoot %+v; in truth %d", away, f.Verdict, f.Overshoot, truth-2000)
		}
	}
}

// A cutOff is how a holder is cut off from the controller and goes on.
type cutOff struct {
	keyed   bool
	maxKeys int
	away    time.Duration // how long B is cut off from the controller
	burst   time.Duration // B admits far too much for that long, beginning 2 s after it was cut off
	window  limiter.Micros
	open    bool // admitted by onStoreUnavailable Allow; else as if granted
}

func (p cutOff) run(t *testing.T) {
	t.Helper()
	began := time.Unix(1_800_000_000, 0)
	rate := limiter.Rate{Limit: 10, Window: p.window}
	l := audit.New(time.Second, audit.Config{Generation: 1, Promise: audit.Promise{Rates: []limiter.Rate{rate}}, Keyed: p.keyed}, began.Add(-time.Hour))
	settings := counts.Settings{Generation: 1, Rates: []limiter.Rate{rate}, Keyed: p.keyed, MaxKeys: p.maxKeys, Holders: 2}
	type side struct {
		holder  audit.Holder
		book    *counts.Book
		limit   *counts.Limit
		session uint64
		on      bool
	}
	sides := []*side{}
	for i := range 2 {
		s := &side{holder: audit.NewHolder(fmt.Sprint("pod", i), "1"), book: counts.NewBook(store.HashValue, nil), session: 1, on: true}
		s.limit = s.book.Open(counts.Name{Namespace: "n", Policy: "p", Limit: "l"}, settings)
		sides = append(sides, s)
		l.Join(s.holder, began)
	}
	a, b := sides[0], sides[1]
	cut, back := began.Add(5*time.Second), began.Add(5*time.Second+p.away)
	end := back.Add(20 * time.Second)
	truth := map[int64]int64{}
	byIndex := map[int64]*limiter.Windows{}
	step := 0
	for now := began; now.Before(end); now = now.Add(100 * time.Millisecond) {
		step++
		index := now.UnixMicro() / int64(p.window)
		w := byIndex[index]
		if w == nil {
			w = &limiter.Windows{N: 1}
			w.Open[0] = limiter.OpenWindow{Rate: rate, Index: index}
			byIndex[index] = w
		}
		ends := time.Duration((index+1)*int64(p.window)-now.UnixMicro()) * time.Microsecond
		admit := func(s *side, value string, cost int64, open bool) {
			e := counts.Event{Outcome: counts.Admitted, Value: value, Cost: cost, Windows: w, EndsIn: ends}
			if open {
				e.Outcome, e.Local = counts.FailedOpen, true
			}
			s.limit.Count(now, e)
			if value == "hot" || !p.keyed {
				truth[index] += cost
			}
		}
		value := func(i int) string {
			if !p.keyed {
				return ""
			}
			return fmt.Sprint("v", i)
		}
		if now.Equal(cut) {
			b.on = false
			l.Lose(b.holder, now)
		}
		if now.Equal(back) {
			b.on = true
			b.session++
			l.Join(b.holder, now)
		}
		if step%5 == 0 {
			admit(a, value(step), 1, false)
			admit(b, value(step), 1, false)
		}
		if p.keyed && !b.on { // many values
			for i := range p.maxKeys {
				admit(b, value(i), 1, false)
			}
		}
		if from := cut.Add(2 * time.Second); !now.Before(from) && now.Before(from.Add(p.burst)) {
			v := ""
			if p.keyed {
				v = "hot"
			}
			admit(b, v, 1000, p.open)
		}
		if step%10 == 0 {
			for _, s := range sides {
				if !s.on {
					continue
				}
				for _, in := range s.book.Report(now, s.session) {
					r, ok, errs := reportFrom(in)
					if !ok || len(errs) > 0 {
						t.Fatal(errs)
					}
					l.Report(s.holder, r, now)
				}
			}
		}
		if step%5 == 0 {
			for _, q := range l.Advance(now) {
				for _, h := range q.Holders {
					for _, s := range sides {
						if s.holder != h || !s.on {
							continue
						}
						reply := s.book.Audit(queryMessage(q))
						keys, err := keysFrom(reply.GetKeys())
						if err != nil {
							t.Fatal(err)
						}
						l.Reply(h, q.ID, keys, reply.GetUnknown())
					}
				}
			}
		}
	}
	var worst int64
	for _, n := range truth {
		worst = max(worst, n-rate.Limit)
	}
	f := l.Figures(end)
	if lies(f, worst) {
		t.Errorf("%+v: verdict %d, overshoot %+v; in truth %d", p, f.Verdict, f.Overshoot, worst)
	}
}

// TestNoFigureMissesAHolderThatWasCutOff from the controller and came back.
func TestNoFigureMissesAHolderThatWasCutOff(t *testing.T) {
	for _, p := range []cutOff{
		{away: 20 * time.Second, burst: 3 * time.Second, window: limiter.Second, open: true, maxKeys: 1},
		{away: 45 * time.Second, burst: 3 * time.Second, window: limiter.Second, open: true, maxKeys: 1},
		{away: 45 * time.Second, burst: 3 * time.Second, window: limiter.Second, maxKeys: 1},
		{away: 12 * time.Second, burst: 3 * time.Second, window: 100 * limiter.Millisecond, open: true, maxKeys: 1},
		{away: 12 * time.Second, burst: 3 * time.Second, window: limiter.Second, open: true, keyed: true, maxKeys: 50},
		{away: 12 * time.Second, burst: 3 * time.Second, window: limiter.Second, keyed: true, maxKeys: 50},
		{away: 30 * time.Second, burst: 3 * time.Second, window: limiter.Second, keyed: true, maxKeys: 1000},
	} {
		p.run(t)
	}
}

func queryMessage(q audit.Query) *fleetpb.AuditQuery {
	return &fleetpb.AuditQuery{Namespace: "n", Policy: "p", Limit: "l", Windows: windowsTo(q.Window), Hashes: q.Hashes}
}

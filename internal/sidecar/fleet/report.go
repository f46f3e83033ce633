package fleet

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weir-dev/weir/internal/fleetpb"
)

const (
	defaultInterval = 5 * time.Second // between reports, when the controller names none
	maxReport       = 1 << 20         // bytes of one Report message, about
	// Every report asks for an answer that makes it askEvery without one, while none is awaited. After
	// maxUnanswered there is a pause. The next report says what those left out would have said, but for windows
	// that were forgotten meanwhile, which it counts as such.
	askEvery      = 4
	maxUnanswered = 8
)

// reportEvery reports at once, because a new session knows nothing, and then
// every interval, at a random phase so that a fleet does not report in step. It pauses while the
// controller is behind.
func (l *link) reportEvery(ctx context.Context, h Handler, welcome *fleetpb.Welcome) {
	interval := time.Duration(welcome.GetReportIntervalMillis()) * time.Millisecond
	if interval <= 0 {
		interval = defaultInterval
	}
	flow := flow{answers: welcome.GetAnswersReports()}
	next := time.NewTimer(rand.N(interval))
	defer next.Stop()
	for {
		ask, ok := flow.next()
		if ok && l.report(ctx, h, ask) != nil {
			return
		}
		for due := false; !due; {
			select {
			case <-next.C:
				next.Reset(interval)
				due = true
			case <-l.reported:
				flow.answered()
				due = !ok // for what was left out
			case <-l.done:
				return
			}
		}
	}
}

// A flow bounds the reports that were sent and not handled yet. The zero value is that of a stream to
// a controller that answers none, and bounds nothing.
type flow struct {
	answers bool // the controller does
	sent    int  // reports that no answer was for yet
	asked   int  // how many of them the awaited answer is for; 0: none is awaited
}

// next reports whether a report is to be sent now, and whether it is to ask for an answer.
func (f *flow) next() (ask, ok bool) {
	if f.asked > 0 && f.sent >= maxUnanswered {
		return false, false
	}
	f.sent++
	if ask = f.answers && f.asked == 0 && f.sent >= askEvery; ask {
		f.asked = f.sent
	}
	return ask, true
}

// answered notes the awaited answer. Another one changes nothing.
func (f *flow) answered() {
	f.sent -= f.asked
	f.asked = 0
}

// report sends what was not reported yet.
func (l *link) report(ctx context.Context, h Handler, ask bool) error {
	l.reporting.Lock()
	defer l.reporting.Unlock()
	whole := h.Report(time.Now(), l.session)
	part, size := &fleetpb.Report{Pools: whole.GetPools()}, 0
	for _, limit := range whole.GetLimits() {
		n := proto.Size(limit)
		if size > 0 && size+n > maxReport {
			part.More = true
			if err := l.send(ctx, reportMessage(part)); err != nil {
				return err
			}
			part, size = new(fleetpb.Report), 0
		}
		part.Limits = append(part.Limits, limit)
		size += n
	}
	part.Answer = ask
	return l.send(ctx, reportMessage(part))
}

func reportMessage(r *fleetpb.Report) *fleetpb.FromHolder {
	return &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Report{Report: r}}
}

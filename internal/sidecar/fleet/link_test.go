package fleet

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestBeatsOvertakeQueuedMessages(t *testing.T) {
	l := newLink(nil, nil, 1, slog.New(slog.DiscardHandler))
	report := reportMessage(new(fleetpb.Report))
	heartbeat := &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Heartbeat{Heartbeat: new(fleetpb.Heartbeat)}}
	for range 100 {
		if err := l.send(t.Context(), report); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if err := l.queue(t.Context(), l.beats, heartbeat); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		if m, ok := l.next(); !ok || m != heartbeat {
			t.Errorf("message %d is %v, want a beat", i, m)
		}
	}
	if m, ok := l.next(); !ok || m != report {
		t.Errorf("after the beats comes %v, want a report", m)
	}
}

// TestAHandlerThatMakesNoEditsAsksForTheWhole, and for nothing when it is sent one.
func TestAHandlerThatMakesNoEditsAsksForTheWhole(t *testing.T) {
	plain := struct{ Handler }{&recorder{}}
	for base, whole := range map[string]bool{"sha256:before": true, "": false} {
		m := &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Config{Config: &fleetpb.Config{Version: "sha256:next", Base: base}}}
		if ack := do(m, plain).GetAcknowledge(); ack.GetWhole() != whole || ack.GetError() == "" || ack.GetVersion() != "sha256:next" {
			t.Errorf("a configuration on %q is acknowledged by %v", base, ack)
		}
	}
}

// auditor answers queries, and nothing else.
type auditor struct{ Handler }

func (auditor) Audit(q *fleetpb.AuditQuery) *fleetpb.AuditReply {
	return &fleetpb.AuditReply{Id: q.GetId()}
}

// TestARejectedRowIsLoggedOnceAndEndsNothing: what the controller asks after it is done.
func TestARejectedRowIsLoggedOnceAndEndsNothing(t *testing.T) {
	var out bytes.Buffer
	l := newLink(nil, nil, 1, slog.New(slog.NewTextHandler(&out, nil)))
	for _, text := range []string{"windows[0].index is 24322", "windows[3].index is 24323", "admitted is -1"} {
		row := &fleetpb.Rejected_Row{Kind: "report", Namespace: "shop", Object: "quota", Limit: "plan", Error: text}
		l.in <- &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Rejected{Rejected: &fleetpb.Rejected{Rows: []*fleetpb.Rejected_Row{row}}}}
	}
	l.in <- &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Audit{Audit: &fleetpb.AuditQuery{Id: 7}}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.handle(t.Context(), auditor{})
	}()
	if reply := <-l.out; reply.GetAudit().GetId() != 7 {
		t.Errorf("got %v, want the answer to what came after", reply)
	}
	close(l.done)
	<-ended
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "shop/quota") || !strings.Contains(lines[0], "windows[0].index is 24322") || !strings.Contains(lines[1], "admitted is -1") {
		t.Errorf("the log says\n%s\nwant each cause once", out.String())
	}
}

// promiser promises what goes beyond an instant.
type promiser struct {
	Handler
	from limiter.Instant
}

func (p promiser) Promise(now, until limiter.Instant) (limiter.Instant, bool) {
	return now - 1, until > p.from
}

// TestAPromiseIsSaidOnceItIsMade, unless that would keep the reader waiting.
func TestAPromiseIsSaidOnceItIsMade(t *testing.T) {
	l := newLink(nil, nil, 1, slog.New(slog.DiscardHandler))
	request := &fleetpb.PromiseRequest{NowMicros: 7, UntilMicros: 9}
	l.promise(request, promiser{from: 9})
	if len(l.out) > 0 {
		t.Fatalf("sent %v although nothing is promised", <-l.out)
	}
	l.promise(request, promiser{from: 8})
	if p := (<-l.out).GetPromise(); p.GetUntilMicros() != 9 || p.GetBegunMicros() != 6 {
		t.Errorf("promised %v", p)
	}
	for len(l.out) < cap(l.out) {
		l.out <- nil
	}
	l.promise(request, promiser{from: 8})
}

package fleet

import (
	"testing"

	"github.com/weir-dev/weir/internal/fleetpb"
)

func TestBeatsPassWhatWaitsToBeSent(t *testing.T) {
	l := newLink(nil, nil, 1)
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

package framing

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestSilentConnectionsDoNotHoldUpOthers: when there are too many at once, the first of them
// get their answers without the time to say something.
func TestSilentConnectionsDoNotHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const silent = 1000
		r, start := NewRefuser(), time.Now()
		took := make(chan time.Duration, silent)
		for range silent {
			near, peer := net.Pipe()
			go func() {
				answer, _ := io.ReadAll(peer)
				if string(answer) != NoMemory {
					t.Errorf("the answer is %q", answer)
				}
				took <- time.Since(start)
			}()
			r.Refuse(near)
		}
		if held := time.Since(start); held > 0 {
			t.Errorf("others were held up for %v", held)
		}
		late := 0
		for range silent {
			if <-took > 0 {
				late++
			}
		}
		if late != refusing {
			t.Errorf("%d could say something, want %d", late, refusing)
		}
	})
}

package sidecar

import (
	"log/slog"
	"net/netip"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

// TestConnectionsMoveTheHeap: many connections lower its goal, since the kernel keeps memory for them in
// the same container, and once they are idle their memory is given back to the system.
func TestConnectionsMoveTheHeap(t *testing.T) {
	const goal = 256 << 20
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(goal))
	p, err := newProcess(config{namespace: "shop", mode: enforce.Enforce}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	port := p.memory.Port(true)
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	for range goal/membudget.SocketBytes/8 + goal/membudget.SocketBytes/32 + 1 {
		c, ok := port.Connect(netip.MustParseAddr("192.0.2.1"), 0, nil)
		if !ok {
			t.Fatal("there is no memory for a connection")
		}
		c.Park(0)
		defer c.Close()
	}
	if got := debug.SetMemoryLimit(-1); got >= goal {
		t.Errorf("the goal of the heap is %d, and was %d before", got, goal)
	}
	eventually(t, "nothing is given back", func() bool {
		runtime.ReadMemStats(&now)
		return now.NumForcedGC > before.NumForcedGC
	})
}

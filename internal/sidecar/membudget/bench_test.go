package membudget

import (
	"net/netip"
	"testing"
)

// BenchmarkRequest is what a request over a connection that is kept costs.
func BenchmarkRequest(b *testing.B) {
	r := New(1 << 30)
	port := r.Port(true)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		c, ok := port.Connect(netip.Addr{}, 0, nil)
		if !ok {
			b.Error("there is no memory")
			return
		}
		defer c.Close()
		for pb.Next() {
			c.Active()
			q, _ := c.Admit(get)
			q.Done()
			c.Idle(1)
		}
	})
}

package storeprobe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

func TestRecollection(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(1_000_000, 0).Add(time.Duration(seconds) * time.Second) }
	type seen struct {
		sent, received int
		lossless       bool
		memories       []limiter.MemoryID
	}
	one, two := []limiter.MemoryID{1, 7}, []limiter.MemoryID{2, 7}
	tests := map[string]struct {
		seen []seen
		want []audit.Unbroken
	}{
		"one answer proves nothing of any time":   {[]seen{{0, 1, false, one}}, []audit.Unbroken{{From: at(1), To: at(0)}}},
		"two in one memory do":                    {[]seen{{0, 1, false, one}, {10, 12, false, one}}, []audit.Unbroken{{From: at(1), To: at(10)}}},
		"one of two memories is lost":             {[]seen{{0, 1, false, one}, {10, 12, false, one}, {20, 21, false, two}, {30, 31, false, two}}, []audit.Unbroken{{From: at(1), To: at(10)}, {From: at(21), To: at(30)}}},
		"too many memories to name":               {[]seen{{0, 1, false, one}, {10, 12, false, nil}, {20, 21, false, one}}, []audit.Unbroken{{From: at(21), To: at(20)}}},
		"memories that are named another way":     {[]seen{{0, 1, false, one}, {10, 12, true, two}, {20, 21, true, two}}, []audit.Unbroken{{From: at(12), To: at(20)}}},
		"an older answer comes late":              {[]seen{{0, 1, false, one}, {10, 12, false, one}, {5, 13, false, one}}, []audit.Unbroken{{From: at(1), To: at(10)}}},
		"one of the memory before comes too late": {[]seen{{0, 1, false, one}, {10, 12, false, two}, {5, 13, false, one}}, []audit.Unbroken{{From: at(1), To: at(0)}, {From: at(12), To: at(10)}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var r recollection
			for _, s := range tt.seen {
				r.see(store.Facts{Lossless: s.lossless, Durable: store.Keeping{Memories: s.memories}}, at(s.sent), at(s.received))
			}
			if diff := cmp.Diff(tt.want, r.unbroken); diff != "" {
				t.Errorf("unbroken (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecollectionIsBounded(t *testing.T) {
	var r recollection
	for i := range 1000 {
		at := time.Unix(int64(i), 0)
		r.see(store.Facts{Durable: store.Keeping{Memories: []limiter.MemoryID{limiter.MemoryID(i)}}}, at, at)
	}
	if n := len(r.unbroken); n != maxUnbroken || !r.unbroken[n-1].To.Equal(time.Unix(999, 0)) {
		t.Errorf("%d spans are remembered, the last to %v", n, r.unbroken[n-1].To)
	}
}

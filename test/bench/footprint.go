package main

import (
	"fmt"
	"runtime"

	"github.com/weir-dev/weir/pkg/limiter"
)

// footprint shows how much memory a key takes beyond its own bytes.
func footprint(show func(*table)) error {
	const n, goal = 1_000_000, 160
	t := &table{
		title: "1,000,000 keys, live heap per key beyond the key's bytes",
		note:  fmt.Sprintf("Goal: at most %d bytes.", goal),
		head:  []string{"", "bytes", ""},
	}
	for i, c := range []func() contender{
		func() contender { return weirKeyedOn("weir", limiter.MaxLimit, generous{}) },
		func() contender { return xtimeKeyed(plenty) },
		func() contender { return sethvargo(plenty) },
	} {
		keys := makeKeys(n)
		before := heap()
		filled := c()
		for _, k := range keys {
			filled.decide(k)
		}
		per := float64(heap()-before) / n
		verdict := ""
		if i == 0 {
			verdict = judge(per, per, goal, 0)
		}
		t.add(filled.name, fmt.Sprintf("%.0f", per), verdict)
		filled.close()
		runtime.KeepAlive(keys)
	}
	show(t)
	return nil
}

// heap returns the bytes that live objects take.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

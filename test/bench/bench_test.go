package main

import "testing"

// BenchmarkDecision runs every contender of every case; the command prints the
// comparison, this is for profiles.
func BenchmarkDecision(b *testing.B) {
	for _, c := range checks() {
		for _, x := range c.contenders() {
			warm(x, c.keys)
			b.Run(c.name+"/"+x.name, func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for i := 0; pb.Next(); i++ {
						x.decide(c.keys[i%len(c.keys)])
					}
				})
			})
			x.close()
		}
	}
}

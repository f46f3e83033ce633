package adaptive

import "github.com/weir-dev/weir/pkg/limiter"

// A rolling baseline is the minimum of the latest samples. It is kept by a monotonic
// deque (Tarjan and others' sliding minimum): only samples that no later one undercuts
// can still become it, so a sample costs O(1) amortised.
type rolling struct {
	ring []sample // rising latency; its length is how many samples count
	head int
	size int
	seen uint64 // samples so far
}

type sample struct {
	index   uint64
	latency limiter.Micros
}

func newRolling(samples int) rolling { return rolling{ring: make([]sample, samples)} }

// observe takes one sample.
func (b *rolling) observe(latency limiter.Micros) {
	for b.size > 0 && b.at(b.size-1).latency >= latency {
		b.size--
	}
	if b.size > 0 && b.seen-b.at(0).index >= uint64(len(b.ring)) {
		b.head = (b.head + 1) % len(b.ring)
		b.size--
	}
	*b.at(b.size) = sample{index: b.seen, latency: latency}
	b.size++
	b.seen++
}

// min returns the minimum, 0 when there is no sample.
func (b *rolling) min() limiter.Micros {
	if b.size == 0 {
		return 0
	}
	return b.at(0).latency
}

// at returns the i-th oldest of the samples kept.
func (b *rolling) at(i int) *sample { return &b.ring[(b.head+i)%len(b.ring)] }

package simulate

import (
	"runtime"
	"sync"
)

// A batch is runs whose results are wanted together.
type batch struct {
	scenarios []Scenario
	results   []Result
}

// add puts a run into the batch and returns where its result will be.
func (b *batch) add(s Scenario) (result func() Result) {
	at := len(b.scenarios)
	b.scenarios = append(b.scenarios, s)
	return func() Result { return b.results[at] }
}

// run plays all runs, as many at once as there are processors: a run depends on
// nothing but its scenario. progress is called with how many are done, one call at a time.
func (b *batch) run(progress func(done, total int)) {
	b.results = make([]Result, len(b.scenarios))
	next := make(chan int)
	var workers sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				b.results[i] = Run(b.scenarios[i])
				mu.Lock()
				done++
				progress(done, len(b.scenarios))
				mu.Unlock()
			}
		})
	}
	for i := range b.scenarios {
		next <- i
	}
	close(next)
	workers.Wait()
}

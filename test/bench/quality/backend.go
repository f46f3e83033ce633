package quality

import (
	"math/rand/v2"
	"sync"
	"time"
)

// threads is how many requests the backend works on at once. All others wait in order.
const threads = 12

// A backend serves requests, and counts those that it was sent and has not answered.
type backend struct {
	idle chan struct{}

	mu       sync.Mutex
	rand     *rand.Rand
	service  time.Duration
	inFlight int64
}

func newBackend(seed uint64) *backend {
	return &backend{idle: make(chan struct{}, threads), rand: rand.New(rand.NewPCG(seed, 1))}
}

// serve blocks until a request is answered.
func (b *backend) serve() {
	b.idle <- struct{}{}
	time.Sleep(b.takes())
	<-b.idle
}

// takes draws how long a request occupies its thread.
func (b *backend) takes() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Duration(float64(b.service) * (0.8 + 0.4*b.rand.Float64()))
}

// become makes requests take another time that begin from now on.
func (b *backend) become(service time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.service = service
}

// enter notes a request that was admitted, and returns how many are in flight.
func (b *backend) enter() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight++
	return b.inFlight
}

// leave notes a request that was answered.
func (b *backend) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight--
}

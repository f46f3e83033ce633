package traffic

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// maxInFlight bounds the requests of one Load that wait for an answer. Where a
// system is so slow that it is reached, requests count as failed, not as unsent.
const maxInFlight = 2048

var errTooSlow = fmt.Errorf("%d requests wait for an answer already", maxInFlight)

// A Target is one proxy that load is sent to.
type Target struct {
	Pod     string
	Address string // host:port
}

// Outcomes is what became of the requests to one pod, by the time each was to be
// sent.
type Outcomes struct {
	Offered, Admitted, Refused, Failed Series // Admitted: 2xx; Refused: 429 or 503
}

// A Load sends requests at a fixed rate, whatever the answers: it is open-loop,
// so a slow answer delays no later request.
type Load struct {
	// OnFailure, when set, is called with why a request counts as failed.
	OnFailure func(error)
	// Prepare, when set, may change a request just before it is sent.
	Prepare func(*http.Request)

	client   *http.Client
	interval atomic.Int64 // nanoseconds between two requests
	inFlight chan struct{}

	mu       sync.Mutex
	targets  []Target
	outcomes map[string]*Outcomes
}

// NewLoad returns a load of a number of requests a second, over all targets.
func NewLoad(perSecond float64) *Load {
	l := &Load{
		client: &http.Client{
			Timeout:   5 * time.Second,
			Transport: &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: 10 * time.Second},
		},
		inFlight: make(chan struct{}, maxInFlight),
		outcomes: map[string]*Outcomes{},
	}
	l.SetRate(perSecond)
	return l
}

// Spread sends each request over a connection of its own, as if each came from another
// client: what balances connections then balances requests. Call it before Run.
func (l *Load) Spread() {
	l.client.Transport = &http.Transport{DisableKeepAlives: true}
}

// SetRate changes the number of requests a second.
func (l *Load) SetRate(perSecond float64) { l.interval.Store(int64(float64(time.Second) / perSecond)) }

// SetTargets changes where requests go, in turn.
func (l *Load) SetTargets(targets []Target) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.targets = targets
}

// Of returns what became of the requests to a pod.
func (l *Load) Of(pod string) *Outcomes {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.outcomes[pod]
	if o == nil {
		o = &Outcomes{}
		l.outcomes[pod] = o
	}
	return o
}

// Sum adds one kind of outcome over all pods, from one instant to before another.
func (l *Load) Sum(from, to time.Time, kind func(*Outcomes) *Series) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sum int64
	for _, o := range l.outcomes {
		sum += kind(o).Between(from, to)
	}
	return sum
}

// Run sends requests until ctx is done and returns when all are answered.
func (l *Load) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer l.client.CloseIdleConnections()
	defer wg.Wait()
	due := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for turn := 0; ; turn++ {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if target, ok := l.pick(turn); ok {
			at := due // the instant it was meant for, also when this goroutine is late
			wg.Go(func() { l.send(context.WithoutCancel(ctx), target, at) })
		}
		due = due.Add(time.Duration(l.interval.Load()))
		timer.Reset(time.Until(due))
	}
}

func (l *Load) pick(turn int) (Target, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.targets) == 0 {
		return Target{}, false
	}
	return l.targets[turn%len(l.targets)], true
}

func (l *Load) send(ctx context.Context, target Target, due time.Time) {
	o := l.Of(target.Pod)
	o.Offered.Add(due)
	select {
	case l.inFlight <- struct{}{}:
		defer func() { <-l.inFlight }()
	default:
		l.fail(o, due, errTooSlow)
		return
	}
	switch status, err := l.get(ctx, "http://"+target.Address+"/"); {
	case err != nil:
		l.fail(o, due, err)
	case status >= 200 && status < 300:
		o.Admitted.Add(due)
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		o.Refused.Add(due)
	default:
		l.fail(o, due, fmt.Errorf("%s answered %d", target.Address, status))
	}
}

func (l *Load) fail(o *Outcomes, due time.Time, why error) {
	o.Failed.Add(due)
	if l.OnFailure != nil {
		l.OnFailure(why)
	}
}

// get returns the status of a whole answer.
func (l *Load) get(ctx context.Context, url string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	if l.Prepare != nil {
		l.Prepare(req)
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

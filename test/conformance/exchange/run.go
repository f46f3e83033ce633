package exchange

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// patience bounds an exchange. All of it takes milliseconds, unless one side waits in vain.
const patience = 20 * time.Second

// Seen is what both sides saw of an exchange.
type Seen struct {
	Requests [][]*Message // by their place in the plan; more than one when a request was sent again
	Answers  [][]*Message // each behind those that are informational
	End      string       // how the connection of the client ended: by the app, or by the client itself
	Lost     []int        // requests, by their place in the plan, over connections that the app had ended
	Late     []string     // what one side waited for in vain
}

// A run is one exchange while it goes on.
type run struct {
	plan  *Plan
	token string
	done  context.Context //nolint:containedctx // of an exchange, whose goroutines all end with it

	mu      sync.Mutex
	changed *sync.Cond
	seen    Seen
	left    bool // the client ended its connection
	over    bool // the client read all that came
	serving int  // goroutines of the app
}

func newRun(ctx context.Context, p *Plan, token string) (r *run, stop func()) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	r = &run{plan: p, token: token, done: ctx}
	r.changed = sync.NewCond(&r.mu)
	r.seen.Requests = make([][]*Message, len(p.requests))
	r.seen.Lost = make([]int, len(p.requests))
	r.seen.Answers = make([][]*Message, 1, len(p.requests))
	wake := context.AfterFunc(ctx, func() { r.note(func() {}) })
	return r, func() { wake(); cancel() }
}

// note runs what changes what others wait for.
func (r *run) note(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	r.changed.Broadcast()
}

// await waits until something is so, and reports whether it is.
func (r *run) await(what string, so func() bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !so() {
		if r.done.Err() != nil {
			r.seen.Late = append(r.seen.Late, what)
			return false
		}
		r.changed.Wait()
	}
	return true
}

// newest is what the app has of a request, nil before it has its head.
func (r *run) newest(i int) *Message {
	if all := r.seen.Requests[i]; len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// has reports whether the app has that much of the body of a request.
func (r *run) has(i, bytes int) func() bool {
	return func() bool {
		m := r.newest(i)
		return m != nil && (len(m.Body) >= bytes || m.State >= Cut)
	}
}

// received reports whether the client has that much of an answer: informational ones, and
// bytes of the body of the last one, for which -1 is before its head.
func (r *run) received(i, interim, bytes int) func() bool {
	return func() bool {
		if r.over || len(r.seen.Answers) > i+1 {
			return true
		}
		if len(r.seen.Answers) <= i {
			return false
		}
		got := r.seen.Answers[i]
		if bytes < 0 || len(got) == 0 {
			return len(got) >= interim && bytes < 0
		}
		final := got[len(got)-1]
		return final.status() >= 200 && (len(final.Body) >= bytes || final.State >= Cut)
	}
}

// answered reports whether an answer was received to its end, or will not be.
func (r *run) answered(i int) func() bool {
	return func() bool {
		if r.over || len(r.seen.Answers) > i+1 {
			return true
		}
		if len(r.seen.Answers) <= i || len(r.seen.Answers[i]) == 0 {
			return false
		}
		final := r.seen.Answers[i][len(r.seen.Answers[i])-1]
		return final.status() >= 200 && final.State > InBody
	}
}

// explained reports whether the app has each request that was answered with 502, or has seen it
// lost: it may be late to see that. Ready, which was not drawn, asks for other apps, too.
func (r *run) explained() bool {
	if r.plan.Seed == 0 {
		return true
	}
	for i, sent := range r.seen.Requests {
		if unanswered(at(r.seen.Answers, i)) && len(sent) == 0 && r.seen.Lost[i] == 0 {
			return false
		}
	}
	return true
}

// unanswered reports whether a client was answered that the app has not answered.
func unanswered(all []*Message) bool {
	return len(all) > 0 && all[len(all)-1].status() == http.StatusBadGateway
}

// split writes data in parts, which end at the offsets. After each of them, and at the end, it
// calls reached.
func split(conn net.Conn, data string, offsets []int, reached func(offset int) bool) error {
	from := 0
	for _, to := range append(offsets[:len(offsets):len(offsets)], len(data)) {
		if to = min(to, len(data)); to > from {
			if _, err := conn.Write([]byte(data[from:to])); err != nil {
				return fmt.Errorf("write: %w", err)
			}
			from = to
		}
		if !reached(from) {
			return errLate
		}
	}
	return nil
}

var errLate = fmt.Errorf("the other side does not see what was sent within %v", patience)

package fleet

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// steady is how long a stream has to last to end an outage.
	steady = 10 * time.Second
	// maxCauses is how many causes of one outage are logged.
	maxCauses = 8
)

// An outage logs when the stream is lost, each other cause for which it does not come
// back, and when it is back. It does not log each attempt, since there are several in a
// second, nor each stream that is lost as soon as it is there.
type outage struct {
	log *slog.Logger // that says where to

	mu     sync.Mutex // guards the rest
	causes map[string]bool
	since  time.Time
	ending *time.Timer // nil while there is no stream
}

// began says that there is a stream.
func (o *outage) began(term uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.causes) == 0 {
		o.log.Info("connected to the controller", "term", term)
		return
	}
	o.ending = time.AfterFunc(steady, func() { o.ended(term) })
}

// ended says that the stream has lasted.
func (o *outage) ended(term uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending == nil {
		return // it was lost just now
	}
	o.log.Info("connected to the controller again", "term", term, "after", time.Since(o.since).Round(time.Second).String())
	o.causes, o.ending = nil, nil
}

// lost says that there is no stream, or that another attempt failed.
func (o *outage) lost(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending != nil {
		o.ending.Stop()
		o.ending = nil
	}
	cause := causeOf(err.Error())
	if o.causes[cause] || len(o.causes) == maxCauses {
		return
	}
	if len(o.causes) == 0 {
		o.causes, o.since = map[string]bool{}, time.Now()
	}
	o.causes[cause] = true
	o.log.Warn("no connection to the controller; trying until there is one", "error", err)
}

// stop ends what goes on beside.
func (o *outage) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending != nil {
		o.ending.Stop()
		o.ending = nil
	}
}

// causeOf returns the text that distinguishes the error from others. Numbers do not:
// ports of connections are new each time.
func causeOf(text string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, text)
}

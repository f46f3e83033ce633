package audit

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// An OpenWindow is what is known of a window that is not over: at least this much was
// admitted in it.
type OpenWindow struct {
	Began, Ends time.Time // on the store's clock
	Limit, Used int64
}

// open returns the open window of the rate with the longest windows, nil when no holder
// reported one of the store that serves. Of a limit with a key there is none: holders name the keys of a window
// when it is over.
func (l *Limit) open() *OpenWindow {
	if l.keyed || len(l.promised.Promise.Rates) == 0 {
		return nil
	}
	var longest limiter.Rate
	for _, r := range l.promised.Promise.Rates {
		if r.Window > longest.Window {
			longest = r
		}
	}
	var newest *window
	for _, w := range l.windows {
		if w.id.since == l.promised.Since && w.id.windows == windowsOf(longest) && !w.over && (newest == nil || w.id.index > newest.id.index) {
			newest = w
		}
	}
	if newest == nil {
		return nil
	}
	out := &OpenWindow{
		Began: time.UnixMicro(int64(newest.id.open().Start())), Ends: time.UnixMicro(int64(newest.id.end())),
		Limit: longest.Limit,
	}
	for _, t := range newest.tallies {
		out.Used += t.admitted
	}
	return out
}

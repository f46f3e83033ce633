package region

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	renewTime = 10 * time.Second // that one renewal may take
	// A renewal that failed is tried again after a pause that doubles. It begins months
	// before the certificate ends, so nobody is in a hurry.
	firstRenewPause, longestRenewPause = 10 * time.Second, 10 * time.Minute
	// settleTime is how long it may take until a Secret that was written is in use.
	settleTime = time.Minute
	// undoneTime is the pause after somebody put the certificate before back.
	undoneTime = time.Hour
)

var errUndone = errors.New("it was renewed, and somebody put the one before back into the secret")

// A renewal is the state of renewing the certificate with which this cluster authenticates
// to a hub.
type renewal struct {
	running  bool
	next     time.Time // nothing is tried before
	pause    time.Duration
	replaced time.Time // the end of the certificate that was renewed last
	problem  error     // of the last try; nil when it succeeded or none was due
}

// renewals are those of each hub and Secret, whatever its version.
type renewals struct {
	mu sync.Mutex
	of map[place]*renewal
}

// begin reports whether a certificate that ends at until has to be renewed now. The
// caller then reports to the renewals how that ended.
func (rs *renewals) begin(p place, from, until, now time.Time) (due, news bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.of[p]
	if now.Before(from) || !now.Before(until) {
		if r != nil && !r.running && now.Before(from) {
			delete(rs.of, p)
			return false, r.problem != nil
		}
		return false, false
	}
	if r == nil {
		r = &renewal{}
		rs.of[p] = r
	}
	switch {
	case r.running || now.Before(r.next):
		return false, false
	case r.replaced.Equal(until):
		r.replaced, r.problem, r.next = time.Time{}, errUndone, now.Add(undoneTime)
		return false, true
	}
	r.running = true
	return true, false
}

// end notes how a renewal of a certificate that ends at until went, and reports whether
// that is news.
func (rs *renewals) end(p place, until time.Time, err error, now time.Time) (news bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.of[p]
	news = textOf(r.problem) != textOf(err)
	r.running, r.problem = false, err
	if err == nil {
		r.replaced, r.pause, r.next = until, 0, now.Add(settleTime)
		return news
	}
	r.pause = min(max(2*r.pause, firstRenewPause), longestRenewPause)
	r.next = now.Add(r.pause)
	return news
}

// problem returns why the certificate is not renewed, "" when it is or is not due.
func (rs *renewals) problem(p place) string {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.of[p]; r != nil {
		return textOf(r.problem)
	}
	return ""
}

// keep leaves only the renewals of places that are open.
func (rs *renewals) keep(open map[place]bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for p, r := range rs.of {
		if !open[p] && !r.running {
			delete(rs.of, p)
		}
	}
}

// renew starts the renewal of the certificates that are due. It does not wait for it.
func (s *Set) renew(ctx context.Context) {
	open := map[place]bool{}
	for _, c := range s.connections.hubs() {
		to := c.anyVersion()
		open[to] = true
		from, until := c.hub.Renewable()
		due, news := s.renewals.begin(to, from, until, time.Now())
		if news {
			s.noteRenewal(to, until)
		}
		if !due {
			s.connections.release(c)
			continue
		}
		s.closing.Go(func() {
			defer s.connections.release(c)
			err := s.renewOne(ctx, c)
			news := s.renewals.end(to, until, err, time.Now())
			if ctx.Err() == nil && (news || err == nil) {
				s.noteRenewal(to, until)
			}
		})
	}
	s.renewals.keep(open)
}

// renewOne asks the hub for another certificate and keeps it where the one before is. The
// next reader of the Secret connects again.
func (s *Set) renewOne(ctx context.Context, c *connection) error {
	ctx, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	next, err := c.hub.Renew(ctx)
	if err != nil {
		s.Log.Error(detailed(err), "the hub did not renew the certificate of this member", "place", c.String())
		return plain(err)
	}
	return s.Source.Keep(ctx, c.place.hub, next)
}

// noteRenewal reports the result of a renewal to the budgets that it concerns.
func (s *Set) noteRenewal(to place, until time.Time) {
	if problem := s.renewals.problem(to); problem != "" {
		s.Log.Error(errors.New(problem), "the certificate of this member is not renewed; it is good until it ends", "place", to.String(), "secret", to.hub.Secret, "ends", until)
	} else {
		s.Log.Info("the certificate of this member is renewed", "place", to.String(), "secret", to.hub.Secret, "before", until)
	}
	for _, p := range s.all() {
		if p.kept[0] == to {
			s.changed(p.name())
		}
	}
}

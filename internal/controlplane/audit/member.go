package audit

import (
	"cmp"
	"time"
	"unique"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A Holder is one sidecar process. A pod whose sidecar starts again is another
// holder. It is as small and as fast to find as a pointer, since each limit knows each of its holders.
type Holder struct{ of unique.Handle[identity] }

// identity is what a Holder stands for.
type identity struct{ podUID, nonce string }

// NewHolder returns the holder that is the process of that nonce in a pod.
func NewHolder(podUID, nonce string) Holder { return Holder{unique.Make(identity{podUID, nonce})} }

// identity returns that of h, which is empty for the zero Holder.
func (h Holder) identity() identity {
	if h == (Holder{}) {
		return identity{}
	}
	return h.of.Value()
}

// PodUID returns the UID of the holder's pod.
func (h Holder) PodUID() string { return h.identity().podUID }

// Nonce returns what distinguishes the process from others of its pod.
func (h Holder) Nonce() string { return h.identity().nonce }

func (h Holder) compare(other Holder) int {
	a, b := h.identity(), other.identity()
	return cmp.Or(cmp.Compare(a.podUID, b.podUID), cmp.Compare(a.nonce, b.nonce))
}

// A member is a holder that enforces the limit.
type member struct {
	account    *account  // that of the holder in Limit.accounts, nil for none
	rounds     int       // of reports that arrived since it joined
	round      time.Time // when the last of them began,
	before     time.Time // and the one before, zero for none
	caught     bool      // up: nothing waits of what it counted before it joined
	waiting    bool      // more waits than its last report had room for
	reported   bool      // the limit was spoken of; the fields below are as it was last
	generation int64
	totals     Totals
	activeKeys int64
	hottest    []HotKey
	// ended is when the newest windows that are over for the holder ended. Once it
	// has left, that proves nothing: they were over because it stopped.
	ended   limiter.Instant
	endedOf limiter.Instant // their period
}

// Join adds a holder: from now on it has to account for windows. One that was
// lost and comes back may still account for those it left unknown.
func (l *Limit) Join(h Holder, now time.Time) {
	if l.members[h] != nil {
		return
	}
	l.succeed(h, now)
	l.members[h] = &member{account: l.accounts[h]}
	delete(l.losses, h)
	for _, w := range l.windows {
		w.rejoin(h)
	}
	l.review()
}

// Leave removes a holder that stopped in good order: what it reported is all
// there is. Only the keys of rows that are not final are unknown.
func (l *Limit) Leave(h Holder) {
	if l.members[h] == nil {
		return
	}
	delete(l.members, h)
	delete(l.accounts, h)
	if l.running[h.PodUID()] == h {
		delete(l.running, h.PodUID())
	}
	for _, w := range l.windows {
		w.leave(h, !l.keyed || w.openRows(h) == 0)
	}
}

// Lose removes a holder that vanished: what it had not accounted for is unknown.
func (l *Limit) Lose(h Holder, now time.Time) {
	m := l.members[h]
	if m == nil {
		return
	}
	delete(l.members, h)
	for _, w := range l.windows {
		w.leave(h, w.accounted(h, m))
	}
	l.vanish(h, now)
	l.pruneLosses(now)
	if len(l.losses) >= maxLosses {
		h = Holder{} // one that never comes back stands for many
	}
	l.losses[h] = now
}

func (l *Limit) pruneLosses(now time.Time) {
	for h, at := range l.losses {
		if now.Sub(at) > l.longest+slackReports*l.interval {
			delete(l.losses, h)
		}
	}
}

// Pass enters a report that says nothing of the limit: the holder has nothing to
// account for.
func (l *Limit) Pass(h Holder, now time.Time) {
	m := l.members[h]
	if m == nil {
		return
	}
	m.hear(now, l.interval)
	m.caught = true
	if a := m.account; a != nil && m.rounds >= silentRounds {
		a.lost = time.Time{}
	}
}

// hear counts rounds of reports: a holder with much to say sends several at once.
func (m *member) hear(now time.Time, interval time.Duration) {
	if m.rounds == 0 || now.Sub(m.round) >= interval/2 {
		m.rounds++
		m.before, m.round = m.round, now
	}
}

// end notes that the windows of t are over for the holder.
func (m *member) end(t tuple) {
	if m.endedOf != t.since {
		m.ended, m.endedOf = 0, t.since
	}
	m.ended = max(m.ended, t.end())
}

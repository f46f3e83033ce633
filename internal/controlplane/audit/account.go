package audit

import (
	"slices"
	"time"
)

// maxAccounts is how many holders that vanished are remembered by what they counted.
const maxAccounts = 4096

// An account compares what a holder counted with the part of it that was accepted. The
// difference changes only when a unit was admitted that is in no accepted row: it was
// forgotten before it was reported, lost on the way, or came too late.
type account struct {
	accepted int64     // units, admitted and refused, of the rows that were accepted
	beyond   int64     // what the holder had counted besides, when the two were compared last
	unplaced int64     // Totals.Unplaced, as it was reported last
	compared time.Time // when; zero for never
	lost     time.Time // when the holder vanished; zero since it accounted for that
}

// account returns that of h.
func (l *Limit) account(h Holder) *account {
	a := l.accounts[h]
	if a == nil {
		a = &account{}
		l.accounts[h] = a
	}
	return a
}

// accountOf returns that of a member, which it keeps.
func (l *Limit) accountOf(h Holder, m *member) *account {
	if m.account == nil {
		m.account = l.account(h)
	}
	return m.account
}

// compare leaves unknown what h may have admitted since it accounted for everything, if
// it counts what is in no accepted row.
func (l *Limit) compare(h Holder, m *member, r *Report, now time.Time) {
	a := l.accountOf(h, m)
	wrong := r.Totals.Unplaced != a.unplaced
	a.unplaced = r.Totals.Unplaced
	if r.Placed != nil && !r.Waiting {
		wrong = wrong || *r.Placed-a.accepted != a.beyond
		a.beyond = *r.Placed - a.accepted
	}
	if wrong && now.After(l.known) {
		l.doubt(later(a.compared, l.known), now)
	}
	if !r.Waiting {
		a.compared, a.lost = now, time.Time{}
	}
}

// Bury says that the process of a pod that vanished does not live on: the pod is gone. What
// it admitted since it last accounted for everything stays unknown.
func (l *Limit) Bury(podUID string, now time.Time) {
	if h, ok := l.running[podUID]; ok && l.members[h] == nil {
		l.bury(h, now)
		delete(l.running, podUID)
	}
}

func (l *Limit) bury(h Holder, now time.Time) {
	if a := l.accounts[h]; a != nil {
		delete(l.accounts, h)
		l.doubt(later(a.compared, l.known), now)
	}
}

// vanished returns the pods whose process vanished and may live on.
func (l *Limit) vanished() []string {
	var pods []string
	for pod, h := range l.running {
		if l.members[h] == nil {
			pods = append(pods, pod)
		}
	}
	slices.Sort(pods)
	return pods
}

// succeed notes that h runs in its pod: the process before it does not live on.
func (l *Limit) succeed(h Holder, now time.Time) {
	if before, ok := l.running[h.PodUID()]; ok && before != h && l.members[before] == nil {
		l.bury(before, now)
	}
	l.running[h.PodUID()] = h
}

// vanish keeps the account of a holder that may live on.
func (l *Limit) vanish(h Holder, now time.Time) {
	l.account(h).lost = now
	if l.running[h.PodUID()] != h {
		l.bury(h, now)
		return
	}
	if len(l.accounts)-len(l.members) <= maxAccounts {
		return
	}
	oldest := h
	for other, a := range l.accounts {
		if l.members[other] == nil && a.lost.Before(l.accounts[oldest].lost) {
			oldest = other
		}
	}
	delete(l.accounts, oldest)
	delete(l.running, oldest.PodUID())
	l.lack()
}

// Unplace marks every window that may have been open until now as unknown: some of what was
// admitted in it is in no report.
func (l *Limit) Unplace(now time.Time) { l.doubt(now, now) }

// doubt marks as unknown every window that may have been open between the instants from and
// now, measured or not: some of what was admitted is in no row.
func (l *Limit) doubt(from, now time.Time) {
	from = from.Add(-patience * l.interval)
	l.unplaced = later(l.unplaced, now)
	for _, w := range l.windows {
		if !w.over || !w.closed.Before(from) {
			w.unplaced = true
			w.reopen()
		}
	}
	for _, f := range l.figures {
		f.lacking = true
		if l.windows[f.shown] == nil {
			f.withdraw()
		}
	}
	l.review()
}

// prove enters what a row that came too late to be counted shows by itself: the least
// that its windows admitted.
func (l *Limit) prove(h Holder, row Row, now time.Time) {
	if p := l.period(row.Since); p != nil && tupleOf(&row).end() <= p.adopted {
		return // it says nothing of this generation
	}
	for id, open := range row.windows() {
		f := l.figures[id.windows]
		if f == nil {
			continue
		}
		w := newWindow(id, now)
		w.claimed = open.Limit
		w.replace(h, counted{}, false, row)
		if l.keyed {
			w.query = &query{}
			for _, k := range row.Keys {
				w.query.hashes = append(w.query.hashes, k.Hash)
			}
		}
		m := l.outcome(w)
		m.early = true
		f.enter(m)
	}
}

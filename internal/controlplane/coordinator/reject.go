package coordinator

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/fleetpb"
)

const (
	maxRejected  = 8           // rows that one answer names; the rest are counted
	rejectedTime = time.Minute // how long a rejection shows in a status
)

// cure ends what a holder is answered whose message makes no sense: nobody but another
// version of the sidecar sends one.
const cure = "; restart the pod, so that its sidecar is of the controller's release"

// Kinds of rows, as the metrics have them.
const (
	reportRow = "report" // of a limit
	poolRow   = "pool"   // a report of a pool
	replyRow  = "reply"  // to an audit query
	leaseRow  = "lease"
	returnRow = "return"
	beatRow   = "beat"
)

// A rejection is a row that cannot be read. It counts for nothing; the rest of the
// message does, and the stream goes on: a sidecar without one is cut off from its limits.
type rejection struct {
	kind string
	of   limitName // limit is empty for a pool
	err  string    // names the field and the cure
}

// A rejected row of an object that a session is served by shows in its status for a while.
type rejected struct {
	kind, err string
	at        time.Time
}

// reject counts the rows and notes them for the status of their policy or pool.
func (t *term) reject(s *session, rows ...rejection) {
	for _, r := range rows {
		t.metrics.rejected.WithLabelValues(r.kind).Inc()
		if !s.note(r, time.Now()) {
			continue
		}
		t.log.Info("cannot read what a sidecar sent; it counts for nothing", "namespace", s.Namespace, "pod", s.Pod, "version", s.version,
			"row", r.kind, "of", r.of.policy.Name, "limit", r.of.limit, "reason", r.err)
		t.noticeOf(r.kind, r.of.policy)
	}
}

func (t *term) noticeOf(kind string, name types.NamespacedName) {
	if kind == poolRow || kind == beatRow {
		t.poolNotices.Add(name)
	} else {
		t.notices.Add(name)
	}
}

// note keeps the rejection if it concerns what the holder is served by, and reports whether
// it is the first for a while.
func (s *session) note(r rejection, now time.Time) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := s.rejected
	if r.kind == poolRow || r.kind == beatRow {
		rows = s.rejectedPools
		if s.pools[r.of.policy] == nil {
			return false
		}
	} else if s.serves == nil || s.serves.limits[r.of] == nil {
		return false
	}
	_, known := rows[r.of]
	rows[r.of] = rejected{kind: r.kind, err: r.err, at: now}
	return !known
}

// forgetRejected drops what has shown for long enough and names what changed by that.
func (t *term) forgetRejected(now time.Time) {
	for _, s := range t.sessions.all() {
		s.mu.Lock()
		for _, rows := range []map[limitName]rejected{s.rejected, s.rejectedPools} {
			for of, r := range rows {
				if now.Sub(r.at) >= rejectedTime {
					delete(rows, of)
					t.noticeOf(r.kind, of.policy)
				}
			}
		}
		s.mu.Unlock()
	}
}

// rejectedOf returns what is to be said of rejected rows of an object, by the name of its
// first limit. The lock is held.
func rejectedOf(rows map[limitName]rejected, name types.NamespacedName) string {
	var first limitName
	for of := range rows {
		if of.policy == name && (first == limitName{} || of.limit < first.limit) {
			first = of
		}
	}
	r, ok := rows[first]
	switch {
	case !ok:
		return ""
	case first.limit == "":
		return "a " + r.kind + ": " + r.err
	}
	return "a " + r.kind + " of limit " + first.limit + ": " + r.err
}

// answerOf says to the holder which rows were not read.
func answerOf(rows []rejection) *fleetpb.ToHolder {
	out := &fleetpb.Rejected{More: int64(max(0, len(rows)-maxRejected))}
	for _, r := range slices.Clone(rows[:min(len(rows), maxRejected)]) {
		out.Rows = append(out.Rows, &fleetpb.Rejected_Row{
			Kind: r.kind, Namespace: shortened(r.of.policy.Namespace, maxErrorText), Object: shortened(r.of.policy.Name, maxErrorText),
			Limit: shortened(r.of.limit, maxErrorText), Error: r.err,
		})
	}
	return &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Rejected{Rejected: out}}
}

package coordinator

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
)

// sessions are the connected holders, one a pod.
type sessions struct {
	serving sync.WaitGroup // what was added and has not ended

	mu     sync.Mutex
	parted bool
	byPod  map[string]*session // by pod UID
	spaces map[string]map[*session]struct{}
}

func newSessions() *sessions {
	return &sessions{byPod: map[string]*session{}, spaces: map[string]map[*session]struct{}{}}
}

// add makes s its pod's session and returns the one it replaces, if any. It
// returns false after part. Otherwise serving is Done when s has ended.
func (ss *sessions) add(s *session) (old *session, ok bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.parted {
		return nil, false
	}
	ss.serving.Add(1)
	old = ss.byPod[s.PodUID]
	if old != nil {
		ss.drop(old)
	}
	ss.byPod[s.PodUID] = s
	space := ss.spaces[s.Namespace]
	if space == nil {
		space = map[*session]struct{}{}
		ss.spaces[s.Namespace] = space
	}
	space[s] = struct{}{}
	return old, true
}

// remove takes s off and reports whether it was its pod's session.
func (ss *sessions) remove(s *session) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.byPod[s.PodUID] != s {
		return false
	}
	ss.drop(s)
	return true
}

func (ss *sessions) drop(s *session) {
	delete(ss.byPod, s.PodUID)
	delete(ss.spaces[s.Namespace], s)
	if len(ss.spaces[s.Namespace]) == 0 {
		delete(ss.spaces, s.Namespace)
	}
}

func (ss *sessions) len() int {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return len(ss.byPod)
}

// of returns the pod's session; nil when it has none.
func (ss *sessions) of(podUID string) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.byPod[podUID]
}

// in returns the sessions of a namespace, ordered by pod.
func (ss *sessions) in(namespace string) []*session {
	ss.mu.Lock()
	out := make([]*session, 0, len(ss.spaces[namespace]))
	for s := range ss.spaces[namespace] {
		out = append(out, s)
	}
	ss.mu.Unlock()
	slices.SortFunc(out, func(a, b *session) int { return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.PodUID, b.PodUID)) })
	return out
}

// namespaces returns those of sessions.
func (ss *sessions) namespaces() []string {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return slices.Collect(maps.Keys(ss.spaces))
}

// all returns every session.
func (ss *sessions) all() []*session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return slices.Collect(maps.Values(ss.byPod))
}

// part says goodbye to every holder and admits no more.
func (ss *sessions) part(reason string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.parted = true
	goodbye := &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Goodbye{Goodbye: &fleetpb.Goodbye{Reason: reason}}}
	for _, s := range ss.byPod {
		s.push(goodbye)
	}
}

// drain waits until every session has ended, after part. It ends those that take longer
// than partTimeout.
func (ss *sessions) drain() {
	late := time.AfterFunc(partTimeout, func() {
		for _, s := range ss.all() {
			s.close(errParted)
		}
	})
	defer late.Stop()
	ss.serving.Wait()
}

package coordinator

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/internal/fleetpb"
)

// sessions are the connected holders, one a pod.
type sessions struct {
	serving sync.WaitGroup // what was added and has not ended

	mu     sync.Mutex
	parted bool
	byPod  map[string]*session // by pod UID
	spaces map[string]map[*session]struct{}
	fresh  map[string][]*session // by namespace: those that takeNew did not return yet
}

func newSessions() *sessions {
	return &sessions{byPod: map[string]*session{}, spaces: map[string]map[*session]struct{}{}, fresh: map[string][]*session{}}
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
	ss.fresh[s.Namespace] = append(ss.fresh[s.Namespace], s)
	return old, true
}

// takeNew returns the sessions of the namespace that were added since the last call, in the order in
// which they came, but for those that have ended.
func (ss *sessions) takeNew(namespace string) []*session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	taken := ss.fresh[namespace]
	delete(ss.fresh, namespace)
	return slices.DeleteFunc(taken, func(s *session) bool { return ss.byPod[s.PodUID] != s })
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

const (
	// partAtOnce is how many holders are said goodbye to at the same time, partStep how long they
	// may take to go, and goodbyeTime how long all may.
	partAtOnce  = 16
	partStep    = 50 * time.Millisecond
	goodbyeTime = 500 * time.Millisecond
)

// part says goodbye to every holder and admits no more. A holder whose goodbye waits behind
// those of many others is not answered meanwhile, and takes its leader for lost before it hears
// of the next. So part says it to some at a time, and the others are served until it is their
// turn. It blocks until all have gone, or for goodbyeTime.
func (ss *sessions) part(reason string) {
	ss.mu.Lock()
	ss.parted = true
	ss.mu.Unlock()
	goodbye := &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Goodbye{Goodbye: &fleetpb.Goodbye{Reason: reason}}}
	late, cancel := context.WithTimeout(context.Background(), goodbyeTime)
	defer cancel()
	for some := range slices.Chunk(ss.all(), partAtOnce) {
		for _, s := range some {
			s.parts.Begin(func() { s.push(goodbye) })
		}
		step, over := context.WithTimeout(late, partStep)
		for _, s := range some {
			select {
			case <-s.gone:
			case <-step.Done():
				s.parts.Insist()
			}
		}
		over()
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

const (
	// maxVersions is how many versions of sidecars are counted separately. A fleet runs two or
	// three at a time.
	maxVersions  = 16
	otherVersion = "other"
)

// versionForm matches the versions of builds. A sidecar can send any text, which must not
// become the value of a label.
var versionForm = regexp.MustCompile(`^[\w.+()-]{1,64}$`)

var connectedSidecars = prometheus.NewDesc("weir_sidecars",
	"Connected sidecars, by the version of their build; other for those beyond the 16 most frequent.", []string{"version"}, nil)

// versions reads how many sidecars of each version are connected, when it is scraped.
// Nothing is remembered of a version once the last of its sidecars is gone, and a
// replica that does not lead reports nothing.
type versions struct{ of *Coordinator }

// Describe implements [prometheus.Collector].
func (versions) Describe(out chan<- *prometheus.Desc) { out <- connectedSidecars }

// Collect implements [prometheus.Collector].
func (v versions) Collect(out chan<- prometheus.Metric) {
	t := v.of.present.Load()
	if t == nil {
		return
	}
	for version, n := range mostFrequent(t.sessions.versions()) {
		out <- prometheus.MustNewConstMetric(connectedSidecars, prometheus.GaugeValue, float64(n), version)
	}
}

// versions returns how many sessions are of each version, as sidecars call theirs.
func (ss *sessions) versions() map[string]int {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	counts := map[string]int{}
	for _, s := range ss.byPod {
		counts[s.version]++
	}
	return counts
}

// mostFrequent keeps those versions, and adds up the others.
func mostFrequent(counts map[string]int) map[string]int {
	most := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	kept, others := map[string]int{}, 0
	for _, version := range most {
		if len(kept) < maxVersions && versionForm.MatchString(version) && version != otherVersion {
			kept[version] = counts[version]
		} else {
			others += counts[version]
		}
	}
	if others > 0 {
		kept[otherVersion] = others
	}
	return kept
}

const (
	// replicasInterval is how often a leader looks for other replicas.
	replicasInterval = time.Second
	// Sidecars that come to wait at a replica spread by waitTime for each, which is what a handshake takes of a
	// processor there. If all came at once, most handshakes would time out, and be made again.
	waitTime      = 2 * time.Millisecond
	leastSpread   = time.Second
	longestSpread = 30 * time.Second
)

// watchReplicas keeps the sidecars informed where the replicas are that may lead next, so
// that they wait there.
func (t *term) watchReplicas(ctx context.Context) {
	if t.Replicas == nil {
		return
	}
	tick := time.NewTicker(replicasInterval)
	defer tick.Stop()
	for {
		addresses, err := t.Replicas(ctx)
		if err == nil {
			t.publishReplicas(addresses)
		} else if ctx.Err() == nil {
			t.log.Error(err, "cannot look for other replicas; sidecars wait at those that are known")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// publishReplicas sends the addresses to all sidecars, if they changed.
func (t *term) publishReplicas(addresses []string) {
	addresses = slices.Sorted(slices.Values(addresses))
	known := t.replicas.Load()
	if known == nil && len(addresses) == 0 || known != nil && slices.Equal(*known, addresses) {
		return
	}
	t.replicas.Store(&addresses) // before the sessions are listed: those that come later are sent it by enter
	m := t.waitAt(addresses)
	for _, s := range t.sessions.all() {
		s.push(m)
	}
}

// sendReplicas sends a session that has just entered where to wait. When that changes meanwhile, it was sent the
// change before, so it is sent that again.
func (t *term) sendReplicas(s *session) {
	for at := t.replicas.Load(); at != nil; {
		s.push(t.waitAt(*at))
		now := t.replicas.Load()
		if now == at {
			return
		}
		at = now
	}
}

// waitAt returns what has a sidecar wait at the addresses. The more sidecars there are, the longer they take.
func (t *term) waitAt(addresses []string) *fleetpb.ToHolder {
	return &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Replicas{
		Replicas: &fleetpb.Replicas{Addresses: addresses, SpreadMillis: spreadOf(max(t.sessions.len(), t.fleet)).Milliseconds()},
	}}
}

// spreadOf returns over how long a number of sidecars spread their handshakes with a replica.
func spreadOf(sidecars int) time.Duration {
	return min(max(time.Duration(sidecars)*waitTime, leastSpread), longestSpread)
}

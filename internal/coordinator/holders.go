package coordinator

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/fleetpb"
)

const (
	// holdersDelay gathers changes of the number of holders.
	holdersDelay = 200 * time.Millisecond
	// returnTime is how long a new leader waits for sidecars to come back before it
	// tells how many there are, and before it takes what they report for all there
	// is. A number that is too low makes local shares too large.
	returnTime = 4 * time.Second
)

// countHolders has the namespace's sessions told soon how many holders there are.
func (t *term) countHolders(namespace string) {
	settle := returnTime - time.Since(t.began)
	t.tasks.AddAfter(task{namespace: namespace, count: true}, max(holdersDelay, settle))
}

// tellHolders tells each session of the namespace how many holders enforce what
// it enforces. While one of them was sent nothing it may enforce what nobody knows of,
// and no number falls.
func (t *term) tellHolders(namespace string) {
	in := t.sessions.in(namespace)
	holders := map[types.NamespacedName]int64{}
	used := map[*config]struct{}{}
	all := true
	for _, s := range in {
		by, sent := s.served()
		used[by] = struct{}{}
		all = all && sent
		for _, policy := range s.policies() {
			holders[policy]++
		}
	}
	for _, s := range in {
		s.tellHolders(holders, all)
	}
	t.configs.keep(namespace, used)
}

// tellHolders sends the holder the counts that are news to it; those that are not all
// there may be only when they are higher.
func (s *session) tellHolders(holders map[types.NamespacedName]int64, all bool) {
	message := &fleetpb.Holders{}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serves == nil {
		return
	}
	for name := range s.serves.policies {
		if n := holders[name]; n > s.told[name] || all && n > 0 && n != s.told[name] {
			s.told[name] = n
			message.Counts = append(message.Counts, &fleetpb.Holders_Count{
				Namespace: name.Namespace, Policy: name.Name, Holders: n,
			})
		}
	}
	if len(message.Counts) > 0 {
		s.push(&fleetpb.ToHolder{Message: &fleetpb.ToHolder_Holders{Holders: message}})
	}
}

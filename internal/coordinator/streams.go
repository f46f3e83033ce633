package coordinator

import (
	"container/list"
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/coordinator/connlimit"
	"github.com/weir-dev/weir/internal/coordinator/podauth"
)

// maxStreams is how many streams a pod has at a time: the one that waits or is served, and
// its successor.
const maxStreams = 2

// streams are those that are authenticated. They bound how many a pod has, and for how many
// pods there is room. A namespace has as much of it as it needs while there is room for all,
// and its fair share when there is not.
type streams struct {
	refusals *connlimit.Refusals

	mu    sync.Mutex
	pods  *connlimit.Places[string, *podStreams] // by namespace
	byPod map[string]*podStreams                 // by pod UID
}

// podStreams are those of one pod, in the order in which they came. The lock of streams is held.
type podStreams struct {
	podauth.Identity
	place *connlimit.Place[string, *podStreams]
	open  []*admitted
}

// An admitted stream is one that is authenticated.
type admitted struct {
	of     *streams
	pod    *podStreams
	end    context.CancelCauseFunc
	served bool // by a session, which a newer one of the pod replaces
}

// newStreams returns room for the streams of as many pods.
func newStreams(pods int, refusals *connlimit.Refusals) *streams {
	newest := (*list.List).Back // those that were there before stay
	return &streams{refusals: refusals, pods: connlimit.NewPlaces[string, *podStreams](pods, pods, newest), byPod: map[string]*podStreams{}}
}

// enter admits a stream of the pod until leave is called. The context that it returns ends when the stream
// has to; its cause is a status, as is the error.
func (ss *streams) enter(ctx context.Context, id podauth.Identity) (context.Context, *admitted, error) {
	ctx, end := context.WithCancelCause(ctx)
	ss.mu.Lock()
	defer ss.mu.Unlock()
	pod := ss.byPod[id.PodUID]
	if pod == nil {
		pod = &podStreams{Identity: id}
		got, givenUp := ss.pods.Take(id.Namespace, pod)
		if got == nil {
			end(nil)
			ss.refusals.Count(connlimit.BoundPods, "namespace", id.Namespace)
			return nil, nil, ss.crowded(id.Namespace)
		}
		if givenUp != nil {
			ss.oust(givenUp.Member)
		}
		pod.place = got
		ss.byPod[id.PodUID] = pod
	}
	if len(pod.open) >= maxStreams {
		ss.replace(pod)
	}
	s := &admitted{of: ss, pod: pod, end: end}
	pod.open = append(pod.open, s)
	return ctx, s, nil
}

// crowded says that there is no room for a pod of the namespace.
func (ss *streams) crowded(namespace string) error {
	return status.Errorf(codes.ResourceExhausted,
		"this controller has room for the sidecars of %d pods, and no namespace has more of them than %s: raise its memory limit", ss.pods.Most, namespace)
}

// oust ends the streams of a pod whose place another one has.
func (ss *streams) oust(pod *podStreams) {
	delete(ss.byPod, pod.PodUID)
	for _, s := range pod.open {
		s.end(ss.crowded(pod.Namespace))
	}
	ss.refusals.Count(connlimit.BoundNamespace, "namespace", pod.Namespace)
}

// replace ends the oldest stream of the pod that is not served.
func (ss *streams) replace(pod *podStreams) {
	for _, s := range pod.open {
		if !s.served {
			s.end(errReplaced)
			ss.refusals.Count(connlimit.BoundPod, "pod", pod.Namespace+"/"+pod.Pod)
			return
		}
	}
}

// serve notes that the stream becomes the one of its pod that is served.
func (s *admitted) serve() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.served = true
}

// leave gives back what the stream took.
func (s *admitted) leave() {
	s.end(nil)
	ss := s.of
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.pod.open = slices.DeleteFunc(s.pod.open, func(other *admitted) bool { return other == s })
	if len(s.pod.open) == 0 {
		ss.pods.Free(s.pod.place)
		if ss.byPod[s.pod.PodUID] == s.pod {
			delete(ss.byPod, s.pod.PodUID)
		}
	}
}

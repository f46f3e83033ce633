package coordinator

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/connlimit"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
)

// maxStreams is how many streams a pod has at a time: the one that waits or is served, and
// its successor.
const maxStreams = 2

// streams are those that are authenticated. They bound how many a pod has, and for how many
// pods there is room, by how many limits each enforces. A namespace has as much of it as it needs
// while there is room for all, and its fair share when there is not.
type streams struct {
	refusals *connlimit.Refusals

	mu    sync.Mutex
	pods  *connlimit.Places[string, *podStreams] // by namespace
	byPod map[string]*podStreams                 // by pod UID
	// refused is the weight of a pod that was found to have no room for what it enforces, by
	// namespace. Those that come next have room for as much, or are not served in the first place.
	refused map[string]int
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

// newStreams returns room for the streams of as many pods that enforce one limit each. Its refusals
// have to be set.
func newStreams(pods int) *streams {
	newest := (*list.List).Back // those that were there before stay
	room := pods * connlimit.Weight(1)
	return &streams{
		pods:    connlimit.NewPlaces[string, *podStreams](room, room, newest),
		byPod:   map[string]*podStreams{},
		refused: map[string]int{},
	}
}

// room returns for how many pods that enforce one limit each there is room.
func (ss *streams) room() int { return ss.pods.Most / connlimit.Weight(1) }

// taken returns which part of the room is taken.
func (ss *streams) taken() float64 {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return float64(ss.pods.Taken) / float64(ss.pods.Most)
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
		got, givenUp := ss.pods.Take(id.Namespace, pod, max(connlimit.Weight(1), ss.refused[id.Namespace]))
		ss.oust(givenUp)
		if got == nil {
			end(nil)
			ss.refusals.Count(connlimit.BoundPods, "namespace", id.Namespace)
			return nil, nil, ss.crowded(id.Namespace)
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
		"this controller has room for the sidecars of %d pods that enforce one limit each, or of fewer that enforce more, "+
			"and no namespace has more of it than %s: raise its memory limit, or have fewer policies select these pods", ss.room(), namespace)
}

// oust ends the streams of pods whose places others have.
func (ss *streams) oust(givenUp []*connlimit.Place[string, *podStreams]) {
	for _, place := range givenUp {
		pod := place.Member
		delete(ss.byPod, pod.PodUID)
		for _, s := range pod.open {
			s.end(ss.crowded(pod.Namespace))
		}
		ss.refusals.Count(connlimit.BoundNamespace, "namespace", pod.Namespace)
	}
}

// enforce gives the pod room for a number of limits. The error is a status: there is not enough.
func (s *admitted) enforce(limits int) error {
	ss, weight := s.of, connlimit.Weight(limits)
	ss.mu.Lock()
	defer ss.mu.Unlock()
	givenUp, ok := ss.pods.Weigh(s.pod.place, weight)
	ss.oust(givenUp)
	if !ok {
		if !s.pod.place.IsFree() { // its streams have not ended meanwhile
			ss.refused[s.pod.Namespace] = weight
			ss.refusals.Count(connlimit.BoundPods, "namespace", s.pod.Namespace)
		}
		return ss.crowded(s.pod.Namespace)
	}
	if weight < ss.refused[s.pod.Namespace] {
		delete(ss.refused, s.pod.Namespace)
	}
	return nil
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

// waiting are the streams that wait until this process leads, one a pod. Their pods are
// authenticated, so a change of leader costs no handshake and no review of a token.
type waiting struct {
	led     chan struct{} // closed when the process leads
	stopped chan struct{} // closed when it leads no more, or never will

	mu    sync.Mutex
	term  uint64
	byPod map[string]chan struct{} // by pod UID; closed when another stream takes the place
}

func newWaiting() *waiting {
	return &waiting{led: make(chan struct{}), stopped: make(chan struct{}), byPod: map[string]chan struct{}{}}
}

// await returns when this process leads and has sent that to the sidecar, or ctx is done. The
// error is a status.
func (w *waiting) await(ctx context.Context, stream fleetpb.Fleet_ConnectServer, id podauth.Identity) error {
	replaced := w.enter(id.PodUID)
	defer w.leave(id.PodUID, replaced)
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	select {
	case <-w.led:
		return stream.Send(&fleetpb.ToHolder{Message: &fleetpb.ToHolder_Lead{Lead: &fleetpb.Lead{Term: w.term}}})
	case <-w.stopped:
		return errParted
	case <-replaced:
		return errReplaced
	case <-ctx.Done():
		return endOf(ctx)
	}
}

// enter has a stream of the pod wait, and ends one that does so already.
func (w *waiting) enter(podUID string) (replaced chan struct{}) {
	replaced = make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	if old, ok := w.byPod[podUID]; ok {
		close(old)
	}
	w.byPod[podUID] = replaced
	return replaced
}

// leave ends the wait of a stream, unless another one has taken its place.
func (w *waiting) leave(podUID string, replaced chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byPod[podUID] == replaced {
		delete(w.byPod, podUID)
	}
}

func (w *waiting) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byPod)
}

// lead lets all go on: this process leads in the term. It is called once at most.
func (w *waiting) lead(term uint64) {
	w.term = term // which is read after led is closed
	close(w.led)
}

// stop ends all waits.
func (w *waiting) stop() { close(w.stopped) }

const (
	// messageRate is how many messages a second are read from a stream on the long run, and
	// at once after a pause of a second. A lease for each request of a pod is fewer.
	messageRate = 20_000
	// throttleBreak is how long a stream that sends more is not read at least, so that the wait
	// is for many messages.
	throttleBreak = 50 * time.Millisecond
)

// newMessageLimit returns what spreads the messages of a stream. A message that it does not let through yet
// waits at the sender, by the flow control of the stream.
func newMessageLimit() *rate.Limiter { return rate.NewLimiter(messageRate, messageRate) }

// throttle waits before a message of the session is handled, if its pod sends too many.
func (t *term) throttle(ctx context.Context, s *session, messages *rate.Limiter) {
	now := time.Now()
	wait := messages.ReserveN(now, 1).DelayFrom(now)
	if wait == 0 {
		return
	}
	t.refusals.Count(connlimit.BoundMessages, "pod", s.Namespace+"/"+s.Pod)
	over := time.NewTimer(wait + throttleBreak)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
	}
}

// maxIdle is how many goroutines of a crew wait for work.
const maxIdle = 32

// A crew does work that needs much stack. The goroutine of a stream waits for messages for days, and
// Go halves a stack only while less than a quarter of it is in use: so a few goroutines have the large
// stacks, and not one for each stream.
type crew struct {
	jobs chan job
	idle chan struct{} // a token for each that waits
	over chan struct{} // closed when none has to wait any more
}

type job struct {
	do   func()
	done chan<- struct{}
}

func newCrew() *crew {
	return &crew{jobs: make(chan job), idle: make(chan struct{}, maxIdle), over: make(chan struct{})}
}

// do returns when f has, which another goroutine calls.
func (c *crew) do(f func()) {
	done := make(chan struct{})
	next := job{do: f, done: done}
	select {
	case c.jobs <- next:
	default:
		go c.work(next)
	}
	<-done
}

// work does a job, and then others while there is room to wait for them.
func (c *crew) work(next job) {
	for {
		next.do()
		close(next.done)
		select {
		case c.idle <- struct{}{}:
		default:
			return
		}
		select {
		case next = <-c.jobs:
			<-c.idle
		case <-c.over:
			return
		}
	}
}

// stop ends those that wait. Jobs are still done.
func (c *crew) stop() { close(c.over) }

// frames is the codec of streams. A handler may receive a message as a frame, and have another goroutine
// read that, which takes much stack.
type frames struct{ encoding.CodecV2 }

// A frame is a message as it came, until it is read.
type frame struct {
	by   encoding.CodecV2
	data mem.BufferSlice
}

// Unmarshal implements [encoding.CodecV2].
func (c frames) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	data.Ref()
	f.by, f.data = c.CodecV2, data
	return nil
}

// read returns the message, once. The error is a status.
func (f *frame) read() (*fleetpb.FromHolder, error) {
	defer func() {
		f.data.Free()
		f.data = nil
	}()
	m := new(fleetpb.FromHolder)
	if err := f.by.Unmarshal(f.data, m); err != nil {
		return nil, status.Errorf(codes.Internal, "a message cannot be read: %v", err)
	}
	return m, nil
}

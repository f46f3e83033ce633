package coordinator

import (
	"context"
	"sync"

	"google.golang.org/grpc/metadata"

	"github.com/weir-dev/weir/internal/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
)

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

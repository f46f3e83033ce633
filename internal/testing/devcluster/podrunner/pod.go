package podrunner

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// pod is the life of one pod on this node.
type pod struct {
	*Runner
	object *corev1.Pod // as it was bound; what matters of it never changes
	ip     netip.Addr
	dir    string

	// Both are in the order of the spec. inits are the init containers; those that
	// restart always are sidecars.
	inits, apps []*container

	deleted    chan struct{} // closed when the pod shall end
	deleteOnce sync.Once
	deadline   time.Time // set before deleted is closed: all containers are gone by then

	changed chan struct{} // holds one token when the status has to be reported
}

func newPod(r *Runner, object *corev1.Pod) *pod {
	p := &pod{
		Runner: r, object: object, ip: r.Network.take(),
		dir:     filepath.Join(r.Dir, object.Namespace+"_"+object.Name+"_"+string(object.UID)),
		deleted: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	for i := range object.Spec.InitContainers {
		p.inits = append(p.inits, newContainer(p, &object.Spec.InitContainers[i]))
	}
	for i := range object.Spec.Containers {
		p.apps = append(p.apps, newContainer(p, &object.Spec.Containers[i]))
	}
	return p
}

func (p *pod) containers() []*container {
	return slices.Concat(p.inits, p.apps)
}

// delete makes the pod end gracefully. Only the first call counts, except that a
// grace of 0 ends the pod at once.
func (p *pod) delete(grace time.Duration) {
	p.deleteOnce.Do(func() {
		p.deadline = time.Now().Add(grace)
		close(p.deleted)
	})
	if grace == 0 {
		for _, c := range p.containers() {
			c.stop(0)
		}
	}
}

// run runs the pod until it is deleted or ctx is done.
func (p *pod) run(ctx context.Context) {
	defer p.Network.giveBack(p.ip)
	defer os.RemoveAll(p.dir)
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.deleted:
			cancel()
		case <-running.Done():
		}
	}()

	var background sync.WaitGroup
	reporting, stopReporting := context.WithCancel(context.WithoutCancel(ctx))
	background.Go(func() { p.report(reporting) })
	background.Go(func() { p.keepTokens(running) })

	if p.writeTokens(running) && p.startInOrder(running) {
		<-running.Done()
	}
	p.terminate(ctx)
	stopReporting()
	background.Wait()
	if ctx.Err() == nil {
		p.confirmDeletion(ctx)
	}
}

// startInOrder starts init containers one after the other, then all others. It
// returns false when ctx ended before that.
func (p *pod) startInOrder(ctx context.Context) bool {
	for _, c := range p.inits {
		c.start()
		ready := c.completed
		if c.isSidecar() {
			ready = c.started
		}
		select {
		case <-ready:
		case <-ctx.Done():
			return false
		}
	}
	for _, c := range p.apps {
		c.start()
	}
	return true
}

// terminate stops the application first and then, in reverse order, the
// sidecars that served it. When ctx is done nothing has any grace.
func (p *pod) terminate(ctx context.Context) {
	left := func() time.Duration {
		if ctx.Err() != nil {
			return 0
		}
		return max(0, time.Until(p.deadline))
	}
	for _, c := range p.apps {
		c.stop(left())
	}
	for _, c := range p.apps {
		c.wait()
	}
	for _, sidecar := range slices.Backward(p.inits) {
		// As with a kubelet, an application that used up the grace leaves its
		// sidecars two seconds.
		sidecar.stop(max(left(), min(2*time.Second, gracePeriod(p.object))))
		sidecar.wait()
	}
}

// confirmDeletion removes the object of a pod whose containers are gone.
func (p *pod) confirmDeletion(ctx context.Context) {
	err := p.Client.CoreV1().Pods(p.object.Namespace).Delete(ctx, p.object.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0),
		Preconditions:      metav1.NewUIDPreconditions(string(p.object.UID)),
	})
	if err != nil && ctx.Err() == nil {
		p.Log.Debug("pod was gone already", "pod", p.object.Name, "error", err)
	}
}

func gracePeriod(object *corev1.Pod) time.Duration {
	seconds := ptr.Deref(object.DeletionGracePeriodSeconds, ptr.Deref(object.Spec.TerminationGracePeriodSeconds, 30))
	return time.Duration(seconds) * time.Second
}

// touch has the pod's status reported soon.
func (p *pod) touch() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

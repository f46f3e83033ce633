package leadership

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// leases are an API server with one Lease.
type leases struct {
	coordinationv1client.LeaseInterface
	mu    sync.Mutex
	lease *coordinationv1.Lease
	took  func()    // what passes during a write
	fails lossiness // of the next writes

	version int                        // of the Lease, as last written
	gets    atomic.Int64               // how often it was read
	watcher *watch.RaceFreeFakeWatcher // the last one; nil: there was none
	blind   error                      // why nobody may watch
}

type lossiness int

const (
	lossless lossiness = iota
	lost               // the write does not arrive
	unheard            // it does, but its answer does not
)

var errTimeout = errors.New("timeout")

func (l *leases) Leases(string) coordinationv1client.LeaseInterface { return l }

func (l *leases) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gets.Add(1)
	if l.lease == nil {
		return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), "weir-controller")
	}
	return l.lease.DeepCopy(), nil
}

func (l *leases) Create(_ context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.write(lease)
}

func (l *leases) Update(_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.write(lease)
}

func (l *leases) write(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lease = lease.DeepCopy()
	if l.took != nil {
		l.took()
	}
	if l.fails != lost {
		l.version++
		lease.ResourceVersion = strconv.Itoa(l.version)
		l.lease = lease
		l.show(watch.Modified)
	}
	if l.fails != lossless {
		return nil, errTimeout
	}
	return lease.DeepCopy(), nil
}

// Watch implements LeaseInterface.
func (l *leases) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.blind != nil {
		return nil, l.blind
	}
	if l.lease == nil || o.ResourceVersion != l.lease.ResourceVersion {
		return nil, apierrors.NewResourceExpired("the Lease has changed")
	}
	w := watch.NewRaceFreeFake()
	l.watcher = w
	context.AfterFunc(ctx, w.Stop)
	return w, nil
}

// show has the watchers see the Lease. The lock is held.
func (l *leases) show(as watch.EventType) {
	if l.watcher != nil {
		l.watcher.Action(as, l.lease.DeepCopy())
	}
}

// drop deletes the Lease.
func (l *leases) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.show(watch.Deleted)
	l.lease = nil
}

// cut ends the last watch, or only has it show nothing more.
func (l *leases) cut(end bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end {
		l.watcher.Stop()
	}
	l.watcher = nil
}

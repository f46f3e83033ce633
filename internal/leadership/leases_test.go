package leadership

import (
	"context"
	"errors"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// leases are an API server with one Lease.
type leases struct {
	coordinationv1client.LeaseInterface
	mu    sync.Mutex
	lease *coordinationv1.Lease
	took  func()    // what passes during a write
	fails lossiness // of the next writes
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
		l.lease = lease
	}
	if l.fails != lossless {
		return nil, errTimeout
	}
	return lease.DeepCopy(), nil
}

package podrunner

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Config says what a Runner works on. All fields are required.
type Config struct {
	Client   kubernetes.Interface // with the rights of a node
	NodeName string
	Network  *Network
	Dir      string // for what pods mount, removed with each pod
	LogDir   string // one file a container, kept
	// Program returns the local program that stands for an image, and false when
	// there is none.
	Program func(pod *corev1.Pod, image string) (path string, ok bool)
	Log     *slog.Logger
}

// A Runner runs the pods of one node.
type Runner struct {
	Config

	probes *http.Client

	mu   sync.Mutex
	pods map[types.UID]*pod
	wg   sync.WaitGroup
}

// New returns a Runner.
func New(cfg Config) *Runner {
	return &Runner{Config: cfg, probes: newProbeClient(), pods: map[types.UID]*pod{}}
}

// Run registers the node and runs its pods until ctx is done; then it kills
// them and returns when all are gone. It takes the Network's listener over.
func (r *Runner) Run(ctx context.Context) error {
	defer r.serveKubelet()()
	if err := r.register(ctx); err != nil {
		return fmt.Errorf("register node %s: %w", r.NodeName, err)
	}
	bound := cache.NewListWatchFromClient(r.Client.CoreV1().RESTClient(), "pods", corev1.NamespaceAll,
		fields.OneTermEqualSelector("spec.nodeName", r.NodeName))
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: bound,
		ObjectType:    &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { r.observe(ctx, o.(*corev1.Pod)) },
			UpdateFunc: func(_, o any) { r.observe(ctx, o.(*corev1.Pod)) },
			DeleteFunc: func(o any) {
				if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
					o = gone.Obj
				}
				r.forget(o.(*corev1.Pod).UID)
			},
		},
	})
	informer.RunWithContext(ctx)
	r.wg.Wait()
	r.probes.CloseIdleConnections()
	return nil
}

// observe starts a pod seen for the first time and stops one that is deleted.
func (r *Runner) observe(ctx context.Context, object *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[object.UID]
	if p == nil {
		p = newPod(r, object)
		r.pods[object.UID] = p
		r.wg.Go(func() { p.run(ctx) })
	}
	if object.DeletionTimestamp != nil {
		p.delete(gracePeriod(object))
	}
}

// forget kills a pod that no longer exists, if it was not stopped before. Until
// then the pod is kept, so that a late event about it does not start it again.
func (r *Runner) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pods[uid]; p != nil {
		p.delete(0)
		delete(r.pods, uid)
	}
}

// PID returns the process id of a running container.
func (r *Runner) PID(namespace, name, container string) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pods {
		if p.object.Namespace != namespace || p.object.Name != name {
			continue
		}
		for _, c := range p.containers() {
			if pid := c.pid(); c.spec.Name == container && pid != 0 {
				return pid, nil
			}
		}
	}
	return 0, fmt.Errorf("container %s of pod %s/%s does not run here", container, namespace, name)
}

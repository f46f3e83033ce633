package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/pkg/policy/revision"
)

// Where sidecars of a world run, and what their pods are called.
const (
	shopSpace = "shop"
	shopApp   = "web"
)

// sidecars are all those of a world.
type sidecars struct {
	world *world
	ca    []byte // that the controller's certificate is verified by
	all   []*sidecar
	snapshots
	messages atomic.Int64 // of numbers of holders, that all were sent

	ctx  context.Context //nolint:containedctx // of their streams, which outlive the call that opens them
	stop context.CancelFunc
	runs sync.WaitGroup

	waits sync.Mutex
	edit  *edit // that is waited for; nil for none
}

func newSidecars(ctx context.Context, w *world) (*sidecars, error) {
	if err := w.createNamespace(ctx, shopSpace); err != nil {
		return nil, err
	}
	// The controller of service accounts creates it.
	err := await(ctx, time.Minute, "the service account of "+shopSpace, func() bool {
		return w.kube.Get(ctx, types.NamespacedName{Namespace: shopSpace, Name: "default"}, &corev1.ServiceAccount{}) == nil
	})
	if err != nil {
		return nil, err
	}
	secret, err := w.cluster.Clients.CoreV1().Secrets("weir-system").Get(ctx, "weir-certificates", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	f := &sidecars{world: w, ca: secret.Data["ca.crt"], snapshots: snapshots{known: map[made]*revision.Held{}}}
	f.ctx, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	return f, os.MkdirAll(filepath.Join(w.dir, "tokens"), 0o700)
}

// grow creates pods until there are n, connects their sidecars, and returns how long it took
// from the first to connect until all have their policies.
func (f *sidecars) grow(ctx context.Context, n int) (time.Duration, error) {
	from := len(f.all)
	f.all = append(f.all, make([]*sidecar, n-from)...)
	err := each(n-from, func(i int) (err error) {
		f.all[from+i], err = f.createPod(ctx, from+i)
		return err
	})
	if err != nil {
		return 0, err
	}
	f.world.say("%d pods with tokens", n)
	began := time.Now()
	for _, s := range f.all[from:] {
		f.runs.Go(func() { s.client.Run(f.ctx, s) })
	}
	err = f.awaitBack(ctx, 0)
	return time.Since(began), err
}

// awaitBack waits until all are connected in a term later than one, and have policies.
func (f *sidecars) awaitBack(ctx context.Context, after uint64) error {
	missing := 0
	err := await(ctx, converge, "that all sidecars are connected", func() bool {
		missing = len(f.all)
		for _, s := range f.all {
			if state := s.client.State(); !state.Connected || state.Term <= after || !s.limited() {
				return false
			}
			missing--
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("%d are not: %w", missing, err)
	}
	return nil
}

// limited reports whether the sidecar enforces anything.
func (s *sidecar) limited() bool {
	set, _ := s.enforcer.Set()
	return len(set.Snapshot.Policies) > 0
}

// createPod creates a pod that no node runs, a token that is bound to it, and its sidecar.
func (f *sidecars) createPod(ctx context.Context, i int) (*sidecar, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: shopSpace, Name: fmt.Sprintf("%s-%05d", shopApp, i),
			Labels: map[string]string{"app": shopApp, v1alpha1.EnforcerLabel: "true"},
		},
		Spec: corev1.PodSpec{
			NodeName: "elsewhere", AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "app", Image: "app"}},
		},
	}
	if err := f.world.kube.Create(ctx, pod); err != nil {
		return nil, err
	}
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	if err := f.world.kube.Status().Patch(ctx, pod, client.MergeFrom(before)); err != nil {
		return nil, err
	}
	token, err := f.world.cluster.Clients.CoreV1().ServiceAccounts(shopSpace).CreateToken(ctx, "default", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			Audiences: []string{podauth.Audience}, ExpirationSeconds: new(int64(4 * 3600)),
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(f.world.dir, "tokens", string(pod.UID))
	if err := os.WriteFile(file, []byte(token.Status.Token), 0o600); err != nil {
		return nil, err
	}
	return f.newSidecar(fleet.Identity{
		Namespace: pod.Namespace, Pod: pod.Name, PodUID: string(pod.UID), BootNonce: "1", Version: "scale", Capture: "redirect", Mode: "enforce",
	}, file, addressOf(i))
}

// close ends all sidecars without a farewell.
func (f *sidecars) close() {
	f.stop()
	f.runs.Wait()
}

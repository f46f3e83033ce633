package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/sidecar/proxy/framing/framingtest"
	"github.com/weir-dev/weir/internal/testing/devcluster"
)

const (
	weirSpace      = "weir-system"
	evilSpace      = "eve"         // where the attackers may do something
	evilUser       = "eve"         // who may edit it, budgets too
	plainUser      = "mallory"     // who may edit it by the roles of Kubernetes, which have no budgets
	cluster        = "hub"         // its name among members of budgets
	policyName     = "checkout"    // of the policy in each namespace
	postgresSecret = "postgres"    // of the attackers', which the controller may read
	ample          = 1_000_000_000 // a limit that no attack uses up

	controllerMemory = 512 << 20 // what the Deployments of controller and webhooks allow
	sidecarMemory    = 128 << 20 // what injection allows
)

// A world is everything that runs.
type world struct {
	options
	logs, programs string

	cluster *devcluster.Cluster
	kube    client.Client // with all rights

	victim    *victim
	authority []byte // of the controller's certificate, in PEM
	webhooks  string // URL

	wire          *framingtest.App // the app behind wireAt, which speaks HTTP/1.1
	wireAt, webAt devcluster.Endpoint
	web           *web // the app behind webAt, which speaks HTTP/2, too

	mu      sync.Mutex
	all     []*limited
	noGroup error // why no cgroup could be made

	stop    context.CancelFunc
	running errgroup.Group
}

// open starts everything, and returns once the victim's limit is served. The world has to be
// closed also when it returns an error.
func open(ctx context.Context, o options) (*world, error) {
	w := &world{options: o, logs: filepath.Join(o.dir, "logs"), programs: filepath.Join(o.dir, "programs")}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stop = stop
	if err := os.MkdirAll(w.programs, 0o755); err != nil {
		return w, err
	}
	binary := filepath.Join(o.root, "bin", "controller")
	controller, script, err := w.limit("controller", binary, controllerMemory)
	if err != nil {
		return w, err
	}
	webhooks, hookScript, err := w.limit("webhooks", binary, controllerMemory)
	if err != nil {
		return w, err
	}
	w.cluster, err = devcluster.Start(ctx, devcluster.Config{
		Root: o.root, Assets: o.assets, Dir: o.dir, Name: cluster, Controller: script, Webhooks: hookScript, Program: w.program,
		ControllerArgs: []string{"--federation-ids=" + victimSpace + "=acme/*," + victimSpace + "=world/*," + evilSpace + "=evil/*," + evilSpace + "=world/*"},
		Log:            slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return w, err
	}
	controller.pid, webhooks.pid = w.cluster.Controller.PID, w.cluster.Webhooks.PID
	if err := w.connect(ctx); err != nil {
		return w, err
	}
	w.running.Go(func() error { w.sample(background); return nil })
	if err := w.openTargets(ctx); err != nil {
		return w, err
	}
	if err := w.openVictim(ctx, background); err != nil {
		return w, err
	}
	for _, l := range w.limits() {
		l.began = l.pid()
	}
	return w, nil
}

// limit makes a program of a process that is watched.
func (w *world) limit(name, program string, memory int64) (*limited, string, error) {
	l, script, noGroup, err := newLimited(w.programs, name, program, memory)
	if err != nil {
		return nil, "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l.pid = func() int { return 0 }
	w.all = append(w.all, l)
	w.noGroup = errors.Join(w.noGroup, noGroup)
	return l, script, nil
}

func (w *world) limits() []*limited {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

// limitedBy says what keeps the processes to their memory.
func (w *world) limitedBy() string {
	if w.noGroup != nil {
		return fmt.Sprintf("GOMEMLIMIT alone and judged by what is resident, because no cgroup could be made: %v", w.noGroup)
	}
	return fmt.Sprintf("cgroups, of %d MiB for the controller and for the webhooks, and %d MiB for each sidecar", controllerMemory>>20, sidecarMemory>>20)
}

// limitSidecar makes the program of a pod's sidecar. One that is started again is another
// process in another group, which the judge finds by its id.
func (w *world) limitSidecar(pod *corev1.Pod) (script string, err error) {
	name := "sidecar " + pod.Name
	l, script, err := w.limit(fmt.Sprintf("%s-%d", pod.Name, time.Now().UnixNano()), filepath.Join(w.root, "bin", "sidecar"), sidecarMemory)
	if err != nil {
		return "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l.name = name
	l.pid = func() int {
		pid, _ := w.cluster.Pods.PID(pod.Namespace, pod.Name, sidecarName)
		return pid
	}
	w.all = slices.DeleteFunc(w.all, func(other *limited) bool {
		if other.name != name || other == l {
			return false
		}
		l.began = other.began
		other.group.Remove()
		return true
	})
	return script, nil
}

// program says which program stands for an image.
func (w *world) program(pod *corev1.Pod, image string) (string, bool) {
	switch image {
	case appImage:
		return filepath.Join(w.root, "bin", "demo-app"), true
	case idleImage:
		return "/bin/sleep", true
	case devcluster.SidecarImage:
		script, err := w.limitSidecar(pod)
		if err != nil {
			return "", false
		}
		return script, true
	}
	return "", false
}

// connect makes the clients of the API server, and reads where the webhooks and the fleet's
// port are.
func (w *world) connect(ctx context.Context) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	var err error
	if w.kube, err = client.New(w.cluster.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	secret := &corev1.Secret{}
	if err := w.kube.Get(ctx, client.ObjectKey{Namespace: weirSpace, Name: "weir-certificates"}, secret); err != nil {
		return err
	}
	w.authority = secret.Data["ca.crt"]
	var hooks admissionregistrationv1.MutatingWebhookConfigurationList
	if err := w.kube.List(ctx, &hooks); err != nil {
		return err
	}
	for i := range hooks.Items {
		for j := range hooks.Items[i].Webhooks {
			if at := hooks.Items[i].Webhooks[j].ClientConfig.URL; at != nil {
				u, err := url.Parse(*at)
				if err != nil {
					return err
				}
				w.webhooks = "https://" + u.Host
			}
		}
	}
	if w.webhooks == "" {
		return errors.New("no webhook is configured")
	}
	return nil
}

// openTargets makes the namespace of the attackers, with two pods whose apps are in this process.
func (w *world) openTargets(ctx context.Context) error {
	if err := w.openSpace(ctx, evilSpace, "attackers", ample); err != nil {
		return err
	}
	if err := w.openPostgresSecret(ctx); err != nil {
		return err
	}
	both := []string{evilUser, plainUser}
	for role, users := range map[string][]string{
		"system:aggregate-to-edit": both, "system:aggregate-to-view": both,
		"weir-policy-editor": both, "weir-pool-editor": both, "weir-policy-viewer": both,
		"weir-budget-editor": {evilUser}, // as an administrator lets some keep budgets
	} {
		var subjects []rbacv1.Subject
		for _, user := range users {
			subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user})
		}
		err := w.kube.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "editor-", Namespace: evilSpace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   subjects,
		})
		if err != nil {
			return err
		}
	}
	var err error
	if w.wireAt, err = w.startPod(ctx, podOf(evilSpace, "wire", idleImage)); err != nil {
		return err
	}
	if w.wire, err = framingtest.ListenAt(appOf(w.wireAt)); err != nil {
		return err
	}
	if w.webAt, err = w.startPod(ctx, podOf(evilSpace, "web", idleImage)); err != nil {
		return err
	}
	w.web, err = listenWeb(appOf(w.webAt))
	return err
}

// openPostgresSecret makes a Secret of the attackers' that the controller may read, as an
// administrator does for a store.
func (w *world) openPostgresSecret(ctx context.Context) error {
	named := metav1.ObjectMeta{Name: postgresSecret, Namespace: evilSpace}
	return errors.Join(
		w.kube.Create(ctx, &corev1.Secret{ObjectMeta: named, StringData: map[string]string{"username": "weir", "password": "weir"}}),
		w.kube.Create(ctx, &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{postgresSecret}, Verbs: []string{"get"}}}}),
		w.kube.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: named,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: postgresSecret},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "weir-controller", Namespace: weirSpace}},
		}),
	)
}

// appOf returns where the app of a pod listens.
func appOf(at devcluster.Endpoint) string {
	host, _, _ := net.SplitHostPort(at.Proxy)
	return net.JoinHostPort(host, "8080")
}

// close ends everything; logs stay.
func (w *world) close() {
	w.stop()
	if w.victim != nil {
		w.victim.tally.Close()
	}
	_ = w.running.Wait() // they end by the context
	if w.cluster != nil {
		w.cluster.Stop()
	}
	if w.wire != nil {
		w.wire.Close()
	}
	if w.web != nil {
		w.web.close()
	}
	for _, l := range w.limits() {
		l.group.Remove()
	}
}

func (*world) say(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

// await returns when done returns nil, and an error when it does not in a minute.
func await(ctx context.Context, what string, done func() error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := done()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s does not come: %w", what, err)
		}
	}
}

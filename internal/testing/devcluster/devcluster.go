package devcluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/internal/testing/devcluster/podrunner"
)

// SidecarImage is the image that the controller injects.
const SidecarImage = "weir.dev/sidecar:dev"

// Config says what a Cluster is made of.
type Config struct {
	Root   string // of the checkout: manifests are read from its config/default
	Assets string // directory with etcd and the programs of Kubernetes
	Dir    string // kubeconfig, pods and logs are kept here; created
	Name   string // of the cluster among the members of a federation; may be empty
	// Controller is the program of the control plane, ControllerArgs follow the
	// arguments of config/manager and win over them.
	Controller     string
	ControllerArgs []string
	Webhooks       string // the program that serves webhooks; default: Controller
	// ServerArgs and ManagerArgs follow the arguments of the API server, and of the controller
	// manager of Kubernetes.
	ServerArgs, ManagerArgs []string
	// Replicas is how many controllers AddController adds at which sidecars wait until these
	// lead. They find no later one.
	Replicas int
	// Program returns the local program that stands for an image, SidecarImage
	// among them.
	Program func(pod *corev1.Pod, image string) (path string, ok bool)
	Log     *slog.Logger
}

// A Cluster is a running control plane with Weir installed and one node.
type Cluster struct {
	Kubeconfig string // path of a file with all rights
	Config     *rest.Config
	Clients    *kubernetes.Clientset
	Controller *Controller // reconcilers, coordinator and hub
	Webhooks   *Controller // the admission webhooks
	Pods       *podrunner.Runner

	control  *controlPlane
	network  *podrunner.Network
	another  func(program string) (*Controller, error)
	replicas []*Controller // beside Controller
	state    string        // the servers' directory

	stopPods context.CancelFunc
	pods     sync.WaitGroup
}

// Start brings a cluster up and returns when the controller serves. It takes
// about ten seconds. The caller has to stop it, also when ctx is done.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	c := &Cluster{Kubeconfig: filepath.Join(cfg.Dir, "kubeconfig")}
	if err := c.start(ctx, cfg); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, cfg Config) (err error) {
	c.state = filepath.Join(cfg.Dir, "state")
	if err := os.MkdirAll(c.state, 0o700); err != nil {
		return err
	}
	logs := filepath.Join(cfg.Dir, "logs")
	c.control = &controlPlane{assets: cfg.Assets, state: c.state, logs: logs, serverArgs: cfg.ServerArgs, managerArgs: cfg.ManagerArgs}
	if err = c.control.start(ctx, c.Kubeconfig); err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	c.Config = c.control.config()
	if c.Clients, err = kubernetes.NewForConfig(c.Config); err != nil {
		return err
	}
	if err := install(ctx, cfg, c); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	if err := errors.Join(c.Controller.Start(ctx), c.Webhooks.Start(ctx)); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	return c.startNode(cfg, logs)
}

// AddController starts a further replica of the controller, of a program like
// Config.Controller.
func (c *Cluster) AddController(ctx context.Context, program string) (*Controller, error) {
	added, err := c.another(program)
	if err != nil {
		return nil, err
	}
	c.replicas = append(c.replicas, added)
	return added, added.Start(ctx)
}

func (c *Cluster) startNode(cfg Config, logs string) (err error) {
	if c.network, err = podrunner.NewNetwork(); err != nil {
		return err
	}
	c.Pods = podrunner.New(podrunner.Config{
		Client: c.Clients, NodeName: "this-machine", Network: c.network,
		Dir: filepath.Join(cfg.Dir, "pods"), LogDir: logs, Program: cfg.Program, Log: cfg.Log,
	})
	ctx, cancel := context.WithCancel(context.Background())
	c.stopPods = cancel
	c.pods.Go(func() {
		if err := c.Pods.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			cfg.Log.Error("the node stopped", "error", err)
		}
	})
	return nil
}

// SignalServer sends a signal to the API server, which SIGSTOP makes one that answers
// nobody until SIGCONT.
func (c *Cluster) SignalServer(sig syscall.Signal) { c.control.api.Signal(sig) }

// ServerPIDs returns the process ids of etcd and of the servers of Kubernetes.
func (c *Cluster) ServerPIDs() []int {
	var pids []int
	for _, p := range c.control.processes {
		pids = append(pids, p.PID())
	}
	return pids
}

// Stop ends every process of the cluster and removes what it kept, except logs.
func (c *Cluster) Stop() {
	if c.stopPods != nil {
		c.stopPods()
		c.pods.Wait()
	}
	if c.network != nil {
		_ = c.network.Close()
	}
	for _, replica := range c.replicas {
		replica.Kill()
	}
	for _, component := range []*Controller{c.Controller, c.Webhooks} {
		if component != nil {
			component.Kill()
		}
	}
	if c.control != nil {
		c.control.stop()
	}
	_ = os.RemoveAll(c.state)
	_ = os.Remove(c.Kubeconfig)
}

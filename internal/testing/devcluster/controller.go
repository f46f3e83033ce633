package devcluster

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/weir-dev/weir/internal/testing/devcluster/process"
)

// controllerPorts are the controller's ports on 127.0.0.1.
type controllerPorts struct{ webhook, fleet, federation, metrics, health string }

func newControllerPorts() (controllerPorts, error) {
	p, err := freePorts(5)
	if err != nil {
		return controllerPorts{}, err
	}
	return controllerPorts{webhook: p[0], fleet: p[1], federation: p[2], metrics: p[3], health: p[4]}, nil
}

// restartPause is how long a controller that died stays away, as a Deployment's
// would.
const restartPause = time.Second

// A Controller is a component of Weir's control plane as a process that can be stopped,
// killed and started again. One that dies by itself is started again.
type Controller struct {
	spec  process.Spec
	ports controllerPorts
	logs  string

	mu   sync.Mutex
	live *process.Process // nil while it does not run
}

// newController returns the process for a Deployment.
func newController(cfg Config, d *appsv1.Deployment, kubeconfig string, ports controllerPorts) *Controller {
	logs := filepath.Join(cfg.Dir, "logs")
	local := []string{
		"--kubeconfig=" + kubeconfig,
		"--namespace=" + d.Namespace,
		"--sidecar-image=" + SidecarImage,
		"--fleet-address=127.0.0.1:" + ports.fleet,
		"--fleet-bind-address=127.0.0.1:" + ports.fleet,
		"--federation-bind-address=127.0.0.1:" + ports.federation,
		"--federation-sans=127.0.0.1",
		"--allow-store-cidrs=127.0.0.0/8", // where stores and other clusters' hubs are
		"--webhook-host=127.0.0.1",
		"--webhook-port=" + ports.webhook,
		"--certificate-sans=127.0.0.1",
		"--metrics-bind-address=127.0.0.1:" + ports.metrics,
		"--health-probe-bind-address=127.0.0.1:" + ports.health,
	}
	if cfg.Name != "" {
		local = append(local, "--cluster-name="+cfg.Name)
	}
	return &Controller{
		spec: process.Spec{
			Path: cfg.Controller,
			Args: slices.Concat(d.Spec.Template.Spec.Containers[0].Args, local, cfg.ControllerArgs),
			Env:  os.Environ(),
			Log:  filepath.Join(logs, d.Spec.Template.Spec.Containers[0].Name+".log"),
		},
		ports: ports, logs: logs,
	}
}

// FederationAddress is where other clusters reach this one as their hub, host:port.
func (c *Controller) FederationAddress() string { return "127.0.0.1:" + c.ports.federation }

// FleetAddress is where sidecars reach this controller, host:port.
func (c *Controller) FleetAddress() string { return "127.0.0.1:" + c.ports.fleet }

// MetricsAddress is where it serves /metrics, host:port.
func (c *Controller) MetricsAddress() string { return "127.0.0.1:" + c.ports.metrics }

// Start starts the process and returns when it is ready.
func (c *Controller) Start(ctx context.Context) error {
	p, err := process.Start(c.spec)
	if err != nil {
		return err
	}
	c.set(p)
	go c.revive(p)
	return await(ctx, p, "controller", c.logs, func(ctx context.Context) error {
		return get(ctx, http.DefaultClient, "http://127.0.0.1:"+c.ports.health+"/readyz")
	})
}

// revive starts the controller again when it ended without being stopped.
func (c *Controller) revive(p *process.Process) {
	<-p.Done()
	<-time.After(restartPause)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live != p {
		return
	}
	next, err := process.Start(c.spec)
	if err != nil {
		c.live = nil
		return
	}
	c.live = next
	go c.revive(next)
}

// Stop ends the controller in good order.
func (c *Controller) Stop() {
	if p := c.set(nil); p != nil {
		p.Stop(30 * time.Second)
	}
}

// Kill ends the controller without warning.
func (c *Controller) Kill() {
	if p := c.set(nil); p != nil {
		p.Kill()
	}
}

// PID returns the controller's process id, 0 while it does not run.
func (c *Controller) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live == nil {
		return 0
	}
	return c.live.PID()
}

// set replaces the process and returns the one before.
func (c *Controller) set(p *process.Process) *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.live
	c.live = p
	return old
}

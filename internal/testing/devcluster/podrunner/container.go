package podrunner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/internal/testing/devcluster/process"
)

// Pauses before a container that ended is started again: much shorter than a
// kubelet's, for people who watch.
const (
	minBackoff = 200 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// container runs one container, again and again, from start to stop.
type container struct {
	pod  *pod
	spec *corev1.Container

	started   chan struct{} // closed when it passed its startup probe for the first time
	completed chan struct{} // closed when an init container ended well
	stopped   chan struct{} // closed when it shall not run any more
	done      chan struct{} // closed when it does not run any more

	startOnce, stopOnce, startedOnce sync.Once

	mu    sync.Mutex
	grace time.Duration // from stop to kill
	state containerState
	live  *process.Process // nil while it does not run
}

// containerState is what the pod's status says of a container.
type containerState struct {
	waiting  string // reason, while it does not run
	message  string // of waiting
	running  metav1.Time
	ended    *corev1.ContainerStateTerminated // the last time it ended
	over     bool                             // ended for good
	restarts int32
	started  bool // passed its startup probe
	ready    bool
}

func newContainer(p *pod, spec *corev1.Container) *container {
	return &container{
		pod: p, spec: spec,
		started: make(chan struct{}), completed: make(chan struct{}),
		stopped: make(chan struct{}), done: make(chan struct{}),
		state: containerState{waiting: "PodInitializing"},
	}
}

// isSidecar distinguishes native sidecars from other init containers.
func (c *container) isSidecar() bool {
	return ptr.Deref(c.spec.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
}

// start makes the container run until stop is called.
func (c *container) start() { c.startOnce.Do(func() { go c.supervise() }) }

// stop asks the container to end and kills it after grace. A later call can
// only shorten the grace.
func (c *container) stop(grace time.Duration) {
	c.mu.Lock()
	c.grace = grace
	kill := c.live
	c.mu.Unlock()
	c.stopOnce.Do(func() { close(c.stopped) })
	c.startOnce.Do(func() { close(c.done) }) // never ran, never will
	if grace == 0 && kill != nil {
		kill.Kill()
	}
}

// wait blocks until the container is gone.
func (c *container) wait() { <-c.done }

// pid returns the process id, 0 while the container does not run.
func (c *container) pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live == nil {
		return 0
	}
	return c.live.PID()
}

// supervise runs the container and starts it again whenever it ends, until it
// is stopped. Init containers that are not sidecars run until they end well.
func (c *container) supervise() {
	defer close(c.done)
	backoff := minBackoff
	for {
		began := time.Now()
		code := c.runOnce()
		if code == 0 && c.isInit() && !c.isSidecar() {
			close(c.completed)
			return
		}
		if time.Since(began) > 2*maxBackoff {
			backoff = minBackoff
		}
		timer := time.NewTimer(backoff)
		select {
		case <-c.stopped:
			timer.Stop()
			c.set(func(s *containerState) { s.over = true })
			return
		case <-timer.C:
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

func (c *container) isInit() bool {
	return slices.Contains(c.pod.inits, c)
}

// runOnce runs the container's program to its end and returns its exit code, -1
// when it could not be started.
func (c *container) runOnce() int {
	p, err := c.launch()
	if err != nil {
		c.set(func(s *containerState) { s.waiting, s.message = "CreateContainerError", err.Error() })
		return -1
	}
	began := metav1.Now()
	c.set(func(s *containerState) {
		s.waiting, s.message, s.running = "", "", began
		if s.ended != nil {
			s.restarts++
		}
	})
	probing, stopProbing := context.WithCancel(context.Background())
	unhealthy := make(chan struct{})
	var probes sync.WaitGroup
	probes.Go(func() { c.probe(probing, unhealthy) })

	select {
	case <-p.Done():
	case <-unhealthy:
		p.Stop(gracePeriod(c.pod.object))
	case <-c.stopped:
		c.mu.Lock()
		grace := c.grace
		c.mu.Unlock()
		p.Stop(grace)
	}
	p.Kill() // what the program left behind
	stopProbing()
	probes.Wait()
	c.set(func(s *containerState) {
		c.live = nil
		s.waiting, s.started, s.ready = "CrashLoopBackOff", false, false
		s.ended = &corev1.ContainerStateTerminated{
			ExitCode: int32(p.ExitCode()), Reason: reasonOf(p.ExitCode()), StartedAt: began, FinishedAt: metav1.Now(),
		}
		s.over = s.ended.ExitCode == 0 && c.isInit() && !c.isSidecar()
	})
	return p.ExitCode()
}

func reasonOf(code int) string {
	if code == 0 {
		return "Completed"
	}
	return "Error"
}

// launch starts the container's program.
func (c *container) launch() (*process.Process, error) {
	spec, err := c.program()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.stopped:
		return nil, fmt.Errorf("container %s is stopped", c.spec.Name)
	default:
	}
	p, err := process.Start(spec)
	if err != nil {
		return nil, err
	}
	c.live = p
	file := filepath.Join(c.pod.dir, c.spec.Name+".pid")
	if err := os.WriteFile(file, []byte(strconv.Itoa(p.PID())+"\n"), 0o644); err != nil {
		c.pod.Log.Error("cannot note a process id", "file", file, "error", err)
	}
	return p, nil
}

// set changes the state and has it reported.
func (c *container) set(change func(*containerState)) {
	c.mu.Lock()
	change(&c.state)
	c.mu.Unlock()
	c.pod.touch()
}

func (c *container) snapshot() containerState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

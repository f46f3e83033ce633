package podrunner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func newProbeClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// probe runs the container's probes until ctx is done: first startup, then
// readiness and liveness. It closes unhealthy and returns when startup or
// liveness failed for good.
func (c *container) probe(ctx context.Context, unhealthy chan<- struct{}) {
	if p := c.spec.StartupProbe; p != nil && !c.watch(ctx, p, func(healthy bool) bool { return !healthy }) {
		if ctx.Err() == nil {
			close(unhealthy)
		}
		return
	}
	c.set(func(s *containerState) {
		s.started = true
		s.ready = c.spec.ReadinessProbe == nil
	})
	c.startedOnce.Do(func() { close(c.started) })

	ready := make(chan struct{})
	go func() {
		defer close(ready)
		if p := c.spec.ReadinessProbe; p != nil {
			c.watch(ctx, p, func(healthy bool) bool {
				c.set(func(s *containerState) { s.ready = healthy })
				return true
			})
		}
	}()
	defer func() { <-ready }()
	if p := c.spec.LivenessProbe; p != nil && !c.watch(ctx, p, func(healthy bool) bool { return healthy }) && ctx.Err() == nil {
		close(unhealthy)
	}
}

// watch probes every period and reports the verdict when it changes: healthy
// after the success threshold, unhealthy after the failure threshold. It returns
// the last verdict when more returned false or ctx is done.
func (c *container) watch(ctx context.Context, p *corev1.Probe, more func(healthy bool) bool) bool {
	if !sleep(ctx, time.Duration(p.InitialDelaySeconds)*time.Second) {
		return false
	}
	var successes, failures int32
	var healthy, known bool
	for {
		if err := c.check(ctx, p); err == nil {
			successes, failures = successes+1, 0
		} else {
			successes, failures = 0, failures+1
		}
		up, down := successes >= max(1, p.SuccessThreshold), failures >= max(1, p.FailureThreshold)
		if (up || down) && (!known || up != healthy) {
			healthy, known = up, true
			if !more(healthy) {
				return healthy
			}
		}
		if !sleep(ctx, time.Duration(max(1, p.PeriodSeconds))*time.Second) {
			return healthy
		}
	}
}

// check probes once.
func (c *container) check(ctx context.Context, p *corev1.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(1, p.TimeoutSeconds))*time.Second)
	defer cancel()
	switch {
	case p.HTTPGet != nil:
		return c.get(ctx, p.HTTPGet)
	case p.TCPSocket != nil:
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.address(p.TCPSocket.Host, p.TCPSocket.Port))
		if err != nil {
			return err
		}
		return conn.Close()
	default:
		return errors.New("only httpGet and tcpSocket probes work without containers")
	}
}

func (c *container) get(ctx context.Context, action *corev1.HTTPGetAction) error {
	scheme := strings.ToLower(string(cmp.Or(action.Scheme, corev1.URISchemeHTTP)))
	url := scheme + "://" + c.address(action.Host, action.Port) + "/" + strings.TrimPrefix(action.Path, "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	for _, h := range action.HTTPHeaders {
		req.Header.Add(h.Name, h.Value)
	}
	req.Header.Set("User-Agent", "kube-probe/podrunner")
	resp, err := c.pod.probes.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode >= 400 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// address returns where a probe goes: the pod's address unless it names a host.
func (c *container) address(host string, port intstr.IntOrString) string {
	number := port.IntValue()
	for _, p := range c.spec.Ports {
		if port.Type == intstr.String && p.Name == port.StrVal {
			number = int(p.ContainerPort)
		}
	}
	return net.JoinHostPort(cmp.Or(host, c.pod.ip.String()), strconv.Itoa(number))
}

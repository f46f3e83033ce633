package podrunner

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// report writes the pod's status whenever it changed, until ctx is done.
func (p *pod) report(ctx context.Context) {
	var last corev1.PodStatus
	began := metav1.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
		}
		next := p.status(began, last)
		if equality.Semantic.DeepEqual(last, next) {
			continue
		}
		if err := p.patchStatus(ctx, next); err != nil {
			if ctx.Err() == nil {
				p.Log.Debug("cannot report a pod's status", "pod", p.object.Name, "error", err)
			}
			if sleep(ctx, time.Second) {
				p.touch()
			}
			continue
		}
		last = next
	}
}

func (p *pod) patchStatus(ctx context.Context, status corev1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.object.UID}, // never that of a later pod of this name
		"status":   status,
	})
	if err != nil {
		return err
	}
	_, err = p.Client.CoreV1().Pods(p.object.Namespace).
		Patch(ctx, p.object.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// status describes the pod. Conditions keep the time of the last change from
// last.
func (p *pod) status(began metav1.Time, last corev1.PodStatus) corev1.PodStatus {
	s := corev1.PodStatus{
		Phase:     corev1.PodRunning,
		StartTime: &began,
		PodIP:     p.ip.String(), PodIPs: []corev1.PodIP{{IP: p.ip.String()}},
		HostIP: p.Network.NodeAddress().String(), HostIPs: []corev1.HostIP{{IP: p.Network.NodeAddress().String()}},
	}
	initialized, ready := true, true
	for _, c := range p.inits {
		state := c.snapshot()
		initialized = initialized && (state.over || c.isSidecar() && (state.started || state.restarts > 0))
		ready = ready && (state.over || state.ready)
		s.InitContainerStatuses = append(s.InitContainerStatuses, c.status(state))
	}
	for _, c := range p.apps {
		state := c.snapshot()
		ready = ready && state.ready
		if state.running.IsZero() {
			s.Phase = corev1.PodPending
		}
		s.ContainerStatuses = append(s.ContainerStatuses, c.status(state))
	}
	set := func(kind corev1.PodConditionType, holds bool) {
		s.Conditions = append(s.Conditions, condition(kind, holds, last.Conditions))
	}
	set(corev1.PodInitialized, initialized)
	set(corev1.ContainersReady, ready)
	set(corev1.PodReady, ready)
	return s
}

func condition(kind corev1.PodConditionType, holds bool, last []corev1.PodCondition) corev1.PodCondition {
	c := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}
	if holds {
		c.Status = corev1.ConditionTrue
	}
	for _, old := range last {
		if old.Type == kind && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	return c
}

func (c *container) status(state containerState) corev1.ContainerStatus {
	s := corev1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, ImageID: c.spec.Image,
		RestartCount: state.restarts, Ready: state.ready || state.over && c.isInit() && !c.isSidecar(), Started: &state.started,
	}
	switch {
	case state.over:
		s.State.Terminated = state.ended
	case state.waiting != "":
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: state.waiting, Message: state.message}
		s.LastTerminationState.Terminated = state.ended
	default:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: state.running}
		s.LastTerminationState.Terminated = state.ended
	}
	return s
}

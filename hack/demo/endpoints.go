package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/testing/devcluster"
	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
)

func (s *site) endpointsFile() string { return filepath.Join(s.dir, "endpoints.json") }

// followEndpoints keeps the file and the targets of the load current.
func (s *site) followEndpoints(ctx context.Context) {
	var last []byte
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		if endpoints, err := s.cluster.Endpoints(ctx); err == nil {
			s.aimLoad(ctx, endpoints)
			if next, err := json.MarshalIndent(endpoints, "", "  "); err == nil && !bytes.Equal(last, next) && s.writeEndpoints(next) == nil {
				last = next
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// aimLoad sends the load to the pods of app.yaml, and to no other injected pod.
func (s *site) aimLoad(ctx context.Context, endpoints []devcluster.Endpoint) {
	pods, err := s.cluster.Clients.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return
	}
	present := map[string]bool{}
	for i := range pods.Items {
		present[pods.Items[i].Name] = true
	}
	s.pods.add(present)
	var targets []traffic.Target
	for _, e := range endpoints {
		if e.Namespace == namespace && present[e.Pod] && e.Proxy != "" {
			targets = append(targets, traffic.Target{Pod: e.Pod, Address: e.Proxy})
		}
	}
	s.load.SetTargets(targets)
}

// writeEndpoints replaces the file, so that readers never see half of it.
func (s *site) writeEndpoints(content []byte) error {
	fresh := s.endpointsFile() + ".new"
	if err := os.WriteFile(fresh, append(content, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, s.endpointsFile())
}

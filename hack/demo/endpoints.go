package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/devcluster"
	"github.com/weir-dev/weir/internal/devcluster/traffic"
)

func (d *demo) endpointsFile() string { return filepath.Join(d.dir, "endpoints.json") }

// followEndpoints keeps the file and the targets of the load current.
func (d *demo) followEndpoints(ctx context.Context) {
	var last []byte
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		if endpoints, err := d.cluster.Endpoints(ctx); err == nil {
			d.aimLoad(ctx, endpoints)
			if next, err := json.MarshalIndent(endpoints, "", "  "); err == nil && !bytes.Equal(last, next) && d.writeEndpoints(next) == nil {
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
func (d *demo) aimLoad(ctx context.Context, endpoints []devcluster.Endpoint) {
	pods, err := d.cluster.Clients.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return
	}
	present := map[string]bool{}
	for i := range pods.Items {
		present[pods.Items[i].Name] = true
	}
	d.pods.add(present)
	var targets []traffic.Target
	for _, e := range endpoints {
		if e.Namespace == namespace && present[e.Pod] && e.Proxy != "" {
			targets = append(targets, traffic.Target{Pod: e.Pod, Address: e.Proxy})
		}
	}
	d.load.SetTargets(targets)
}

// writeEndpoints replaces the file, so that readers never see half of it.
func (d *demo) writeEndpoints(content []byte) error {
	fresh := d.endpointsFile() + ".new"
	if err := os.WriteFile(fresh, append(content, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, d.endpointsFile())
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

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
			d.load.SetTargets(targets(endpoints))
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

// targets returns the pods that shop.yaml started; others have no tally.
func targets(endpoints []devcluster.Endpoint) []traffic.Target {
	var list []traffic.Target
	for _, e := range endpoints {
		if e.Namespace == "shop" && e.Proxy != "" {
			list = append(list, traffic.Target{Pod: e.Pod, Address: e.Proxy})
		}
	}
	return list
}

// writeEndpoints replaces the file, so that readers never see half of it.
func (d *demo) writeEndpoints(content []byte) error {
	fresh := d.endpointsFile() + ".new"
	if err := os.WriteFile(fresh, append(content, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, d.endpointsFile())
}

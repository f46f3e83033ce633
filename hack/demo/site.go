package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/internal/testing/devcluster"
	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
)

// A site is one cluster, the application in it and the load on that.
type site struct {
	options
	name string // of the cluster among those that share a budget

	tally   *traffic.Tally
	load    *traffic.Load
	cluster *devcluster.Cluster
	pods    *roster

	stop       context.CancelFunc
	background sync.WaitGroup
}

func newSite(o options, name string) *site { return &site{options: o, name: name, pods: newRoster()} }

// boot starts the cluster, without the application.
func (s *site) boot(ctx context.Context) (err error) {
	if s.tally, err = traffic.NewTally(); err != nil {
		return err
	}
	s.cluster, err = devcluster.Start(ctx, devcluster.Config{
		Root: s.root, Assets: s.assets, Dir: s.dir, Name: s.name,
		Controller:     filepath.Join(s.root, "bin", "controller"),
		ControllerArgs: devcluster.QuickLeaderElection,
		Program:        s.program,
		Log:            slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	return s.linkKubectl()
}

// deploy applies the application and what comes with it, sends it that many requests a
// second and returns when its pods are ready.
func (s *site) deploy(ctx context.Context, manifest string, perSecond float64) error {
	if err := s.cluster.Apply(ctx, []byte(manifest)); err != nil {
		return err
	}
	s.startBackground(perSecond)
	return s.awaitPods(ctx, 4)
}

// program says which local program stands for an image.
func (s *site) program(_ *corev1.Pod, image string) (string, bool) {
	programs := map[string]string{devcluster.SidecarImage: "sidecar", "weir.dev/demo-app:dev": "demo-app"}
	name, ok := programs[image]
	return filepath.Join(s.root, "bin", name), ok
}

func (s *site) linkKubectl() error {
	bin := filepath.Join(s.dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	return os.Symlink(filepath.Join(s.assets, "kubectl"), filepath.Join(bin, "kubectl"))
}

// startBackground starts the load and what keeps its targets current.
func (s *site) startBackground(perSecond float64) {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.load = traffic.NewLoad(perSecond)
	s.background.Go(func() { s.load.Run(ctx) })
	s.background.Go(func() { s.followEndpoints(ctx) })
}

func (s *site) awaitPods(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		endpoints, err := s.cluster.Endpoints(ctx)
		if err == nil && len(endpoints) >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d pods are ready; their logs are in %s", len(endpoints), n, filepath.Join(s.dir, "logs"))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// close stops everything. Logs stay.
func (s *site) close() {
	if s.stop != nil {
		s.stop()
		s.background.Wait()
	}
	if s.cluster != nil {
		s.cluster.Stop()
	}
	if s.tally != nil {
		s.tally.Close()
	}
	_ = os.Remove(s.endpointsFile())
	_ = os.RemoveAll(filepath.Join(s.dir, "pods"))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	clientset "k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

// backends are the servers that budgets are kept in.
type backends struct {
	redis, postgres *servers.Server
	etcd            *clientv3.Client
	configMaps      corev1client.ConfigMapInterface // of an API server over that etcd
	stops           []func()
}

// startBackends starts all servers, or none.
func startBackends() (*backends, error) {
	b := &backends{}
	for _, start := range []func() error{b.startStores, b.startControlPlane} {
		if err := start(); err != nil {
			b.stop()
			return nil, err
		}
	}
	return b, nil
}

// stop stops what was started, the latest first.
func (b *backends) stop() {
	for _, stop := range slices.Backward(b.stops) {
		stop()
	}
}

func (b *backends) startStores() error {
	logs, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return err
	}
	b.stops = append(b.stops, func() { _ = os.RemoveAll(logs) })
	if b.redis, err = servers.Redis(context.Background(), logs); err != nil {
		return err
	}
	b.stops = append(b.stops, b.redis.Kill)
	if b.postgres, err = servers.Postgres(context.Background(), logs); err != nil {
		return err
	}
	b.stops = append(b.stops, b.postgres.Kill)
	return nil
}

// startControlPlane starts an API server and its etcd.
func (b *backends) startControlPlane() error {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return errors.New("KUBEBUILDER_ASSETS must name the directory of etcd and kube-apiserver; `make bench` sets it")
	}
	environment := &envtest.Environment{ControlPlaneStartTimeout: 90 * time.Second}
	b.stops = append(b.stops, func() { _ = environment.Stop() }) // a start that failed may leave processes behind
	config, err := environment.Start()
	if err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	config.QPS = -1 // the server is ours alone
	clients, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	b.configMaps = clients.CoreV1().ConfigMaps("default")
	b.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{environment.ControlPlane.Etcd.URL.String()}})
	if err != nil {
		return err
	}
	b.stops = append(b.stops, func() { _ = b.etcd.Close() })
	return nil
}

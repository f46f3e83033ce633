package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster"
	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

// The kinds of coordinators.
const (
	memoryKind     = "memory"
	redisKind      = "Redis"
	postgresKind   = "Postgres"
	kubernetesKind = "Kubernetes"

	postgresUser = servers.PostgresUser
	hubMember    = "hub" // is offered nothing
	hubNamespace = "weir-system"
)

var kinds = []string{memoryKind, redisKind, postgresKind, kubernetesKind}

// An evaluation is everything that runs while it is measured.
type evaluation struct {
	network  *network
	redis    *servers.Server
	postgres *servers.Server
	cluster  *devcluster.Cluster
	kube     client.Client
	memory   *memoryHub
	mu       sync.Mutex
	secrets  map[string]map[string][]byte // by kind and member; guarded by mu
}

// open starts the coordinators. The caller closes the evaluation, also after an error.
func (e *evaluation) open(ctx context.Context, root, dir string) (err error) {
	logs := filepath.Join(dir, "logs")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	if e.redis, err = servers.Redis(ctx, logs); err != nil {
		return err
	}
	if e.postgres, err = servers.Postgres(ctx, logs); err != nil {
		return err
	}
	names := []string{"127.0.0.1"}
	for i := range regions {
		names = append(names, address(i, 1))
	}
	e.cluster, err = devcluster.Start(ctx, devcluster.Config{
		Root: root, Assets: os.Getenv("KUBEBUILDER_ASSETS"), Dir: dir, Name: hubMember,
		Controller:     filepath.Join(root, "bin", "controller"),
		ControllerArgs: append([]string{"--federation-sans=" + strings.Join(names, ","), "--federation-ids=default=eval/*"}, devcluster.QuickLeaderElection...),
		Program:        func(*corev1.Pod, string) (string, bool) { return "", false },
		Log:            slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	if e.kube, err = client.New(e.cluster.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	e.memory, err = startMemoryHub(ctx, e.kube, e.network)
	return err
}

func (e *evaluation) close() {
	if e.memory != nil {
		e.memory.stop()
	}
	if e.cluster != nil {
		e.cluster.Stop()
	}
	for _, s := range []*servers.Server{e.redis, e.postgres} {
		if s != nil {
			s.Kill()
		}
	}
	e.network.close()
}

// address returns where a coordinator listens.
func (e *evaluation) address(kind string) string {
	switch kind {
	case redisKind:
		return e.redis.Address
	case postgresKind:
		return e.postgres.Address
	case memoryKind:
		return e.memory.address
	default:
		return e.cluster.Controller.FederationAddress()
	}
}

// announce makes a run's budget known to its coordinator, and returns its id.
func (e *evaluation) announce(ctx context.Context, r run, n int) (id string, err error) {
	id = fmt.Sprintf("eval/%s-%d", r.Kind, n)
	switch r.Kind {
	case memoryKind:
		e.memory.keep(id, r.params())
	case kubernetesKind:
		id = fmt.Sprintf("eval/kubernetes-%d", n)
		budget := &v1alpha1.FederatedBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("run-%d", n)},
			Spec: v1alpha1.FederatedBudgetSpec{
				ID: id, Rate: v1alpha1.BudgetRate{Limit: budgetLimit, Window: v1alpha1.Duration(r.Window.String())},
			},
		}
		for _, m := range r.params().Members {
			budget.Spec.Members = append(budget.Spec.Members, v1alpha1.BudgetMember{Name: m.Name})
		}
		if r.Keyed {
			keyToObject(&budget.Spec)
		}
		if err := e.kube.Create(ctx, budget); err != nil {
			return "", err
		}
	default:
		return id, nil // the one that comes first says what it is divided by
	}
	return id, e.fetch(ctx, r.Kind)
}

// fetch reads the credentials of all regions, once for each kind.
func (e *evaluation) fetch(ctx context.Context, kind string) error {
	of := hubNamespace
	if kind == memoryKind {
		of = memoryNamespace
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range regions {
		name := kind + "/" + memberName(i)
		for e.secrets[name] == nil {
			var made corev1.Secret
			err := e.kube.Get(ctx, client.ObjectKey{Namespace: of, Name: "weir-member-" + memberName(i)}, &made)
			if err == nil {
				e.secrets[name] = made.Data
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("no credentials of %s for %s: %w", kind, memberName(i), err)
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return nil
}

func (e *evaluation) secret(kind string, i int) map[string][]byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.secrets[kind+"/"+memberName(i)]
}

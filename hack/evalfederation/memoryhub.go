package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/internal/testing/freeport"
	"github.com/weir-dev/weir/pkg/federation/coordinator/memory"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	storememory "github.com/weir-dev/weir/pkg/store/memory"
)

const memoryNamespace = "weir-eval"

// A memoryHub serves budgets from memory alone: what a hub costs without anything set
// aside.
type memoryHub struct {
	address string
	stop    func()

	mu      sync.Mutex
	budgets map[string]ledger.Params
}

func startMemoryHub(ctx context.Context, kube client.Client, n *network) (*memoryHub, error) {
	address, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: memoryNamespace}}
	if err := kube.Create(ctx, space); err != nil {
		return nil, err
	}
	h := &memoryHub{address: address, budgets: map[string]ledger.Params{}}
	names := []string{"127.0.0.1"}
	for i := range regions {
		names = append(names, n.host(i))
	}
	credentials := hub.NewCredentials(hub.CredentialsConfig{
		Client: kube, Namespace: memoryNamespace, Self: hubMember, Budgets: h, Names: names, Interval: time.Second,
	})
	clock := storememory.NewClock(time.Now(), 0)
	server := hub.NewServer(hub.ServerConfig{
		Address: address, Budgets: h, Credentials: credentials,
		Coordinator: memory.New(memory.Options{Clock: func() limiter.Instant { return clock.Now() }, Term: 1, First: true}),
	})
	running, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = credentials.Start(running) })
	parts.Go(func() {
		if err := server.Start(running); err != nil {
			fmt.Println("the hub in memory stopped:", err)
		}
	})
	h.stop = func() { cancel(); parts.Wait() }
	return h, nil
}

// keep takes a budget on.
func (h *memoryHub) keep(id string, p ledger.Params) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.budgets[id] = p
}

// Budget implements hub.Budgets.
func (h *memoryHub) Budget(id string) (ledger.Params, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, ok := h.budgets[id]
	return p, ok
}

// Members implements hub.Budgets.
func (h *memoryHub) Members() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for _, p := range h.budgets {
		for _, m := range p.Members {
			names = append(names, m.Name)
		}
	}
	return names
}

// Credentialed implements hub.Budgets: all but the hub have a Secret.
func (h *memoryHub) Credentialed() []string {
	names := slices.Compact(slices.Sorted(slices.Values(h.Members())))
	return slices.DeleteFunc(names, func(name string) bool { return name == hubMember })
}

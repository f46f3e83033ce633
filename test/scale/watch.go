package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// A watch notes when conditions of policies became true, as a client
// that watches them sees it.
type watch struct {
	mu       sync.Mutex
	policies map[types.NamespacedName]seen
}

// seen is what a watch saw of a policy.
type seen struct {
	generation           int64
	accepted, programmed time.Time // of this generation; zero: not yet
}

// newWatch watches all policies until ctx is done.
func newWatch(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) (*watch, error) {
	w := &watch{policies: map[types.NamespacedName]seen{}}
	informers, err := cache.New(config, cache.Options{Scheme: scheme, DefaultTransform: onlyConditions})
	if err != nil {
		return nil, err
	}
	informer, err := informers.GetInformer(ctx, &v1alpha1.RateLimitPolicy{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.note(o.(*v1alpha1.RateLimitPolicy)) },
		UpdateFunc: func(_, o any) { w.note(o.(*v1alpha1.RateLimitPolicy)) },
	})
	if err != nil {
		return nil, err
	}
	go func() { _ = informers.Start(ctx) }() // it ends with the context
	if !informers.WaitForCacheSync(ctx) {
		return nil, errors.New("the policies cannot be watched")
	}
	return w, nil
}

// onlyConditions drops what a watch does not look at.
func onlyConditions(object any) (any, error) {
	p, ok := object.(*v1alpha1.RateLimitPolicy)
	if !ok {
		return object, nil
	}
	p.ManagedFields, p.Spec = nil, v1alpha1.RateLimitPolicySpec{}
	p.Status = v1alpha1.RateLimitPolicyStatus{Conditions: p.Status.Conditions}
	return p, nil
}

func (w *watch) note(p *v1alpha1.RateLimitPolicy) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	name := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	s := w.policies[name]
	if s.generation != p.Generation {
		s = seen{generation: p.Generation}
	}
	if s.accepted.IsZero() && holds(p, v1alpha1.AcceptedCondition) {
		s.accepted = now
	}
	if s.programmed.IsZero() && holds(p, v1alpha1.ProgrammedCondition) {
		s.programmed = now
	}
	w.policies[name] = s
}

// holds reports whether a condition says True of the present generation.
func holds(p *v1alpha1.RateLimitPolicy, condition string) bool {
	c := meta.FindStatusCondition(p.Status.Conditions, condition)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == p.Generation
}

// of returns what was seen of a policy.
func (w *watch) of(name types.NamespacedName) seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.policies[name]
}

// accepted returns how many policies are accepted.
func (w *watch) accepted() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.policies {
		if !s.accepted.IsZero() {
			n++
		}
	}
	return n
}

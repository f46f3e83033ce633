package main

import (
	"maps"
	"slices"
	"sync"
)

// namespace and selector name the pods of app.yaml, those that are limited.
const (
	namespace = "shop"
	selector  = "app=checkout"
)

// roster is the names of all pods of app.yaml there ever were: what a pod that
// is gone has admitted still counts.
type roster struct {
	mu    sync.Mutex
	names map[string]bool
}

func newRoster() *roster { return &roster{names: map[string]bool{}} }

func (r *roster) add(names map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.names, names)
}

func (r *roster) sorted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.names))
}

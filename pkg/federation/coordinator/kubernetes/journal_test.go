package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A journal is one in memory, whose answers a test can hold up, lose and replace.
type journal struct {
	mu      sync.Mutex // guards all below
	records map[string]kubernetes.Record
	version map[string]int
	born    map[string]bool // budgets that were ever kept
	next    int
	writes  int // that succeeded

	// before is called with each call, outside of the lock, and may block; its error is
	// the answer, and nothing was done.
	before func(ctx context.Context, op string) error
	losing bool // the answers of writes are lost
}

var (
	_ kubernetes.Journal = (*journal)(nil)
	_ kubernetes.Births  = (*journal)(nil)
)

func newJournal() *journal {
	return &journal{records: map[string]kubernetes.Record{}, version: map[string]int{}, born: map[string]bool{}}
}

func (j *journal) enter(ctx context.Context, op string) error {
	j.mu.Lock()
	before := j.before
	j.mu.Unlock()
	if before == nil {
		return ctx.Err()
	}
	return before(ctx, op)
}

func (j *journal) Load(ctx context.Context, id string) (kubernetes.Record, string, error) {
	if err := j.enter(ctx, "load"); err != nil {
		return kubernetes.Record{}, "", err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	r, ok := j.records[id]
	if !ok {
		return r, "", fmt.Errorf("%s: %w", id, kubernetes.ErrNotFound)
	}
	return r, strconv.Itoa(j.version[id]), nil
}

func (j *journal) Save(ctx context.Context, id string, r kubernetes.Record, version string) (string, error) {
	if err := j.enter(ctx, "save"); err != nil {
		return "", err
	}
	if err := r.Validate(); err != nil {
		panic(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	present := ""
	if _, ok := j.records[id]; ok {
		present = strconv.Itoa(j.version[id])
	}
	if present != version {
		return "", &kubernetes.ConflictError{ID: id, Cause: errors.New("it has version " + present)}
	}
	j.next++
	j.records[id], j.version[id] = r, j.next
	j.writes++
	if j.losing {
		return "", errors.New("the answer was lost")
	}
	return strconv.Itoa(j.next), nil
}

// Known implements kubernetes.Births.
func (j *journal) Known(ctx context.Context, id string, _ limiter.Micros) (bool, error) {
	if err := j.enter(ctx, "known"); err != nil {
		return false, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.born[id], nil
}

// Enter implements kubernetes.Births.
func (j *journal) Enter(ctx context.Context, id string, _ limiter.Micros) error {
	if err := j.enter(ctx, "enter"); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.born[id] = true
	return nil
}

func (j *journal) record(id string) (kubernetes.Record, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, ok := j.records[id]
	return r, ok
}

// wipe deletes every record. The births stay.
func (j *journal) wipe() {
	j.mu.Lock()
	defer j.mu.Unlock()
	clear(j.records)
}

// trouble replaces what is called with each call.
func (j *journal) trouble(before func(ctx context.Context, op string) error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.before = before
}

// lose makes the answers of writes be lost, or not any more.
func (j *journal) lose(losing bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.losing = losing
}

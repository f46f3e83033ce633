package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"

	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/limiter"
)

// BirthsConfigMap is the name of the ConfigMap that holds which budgets are not new.
const BirthsConfigMap = "weir-births-budgets"

const birthsKey = "births"

// refreshBirths is how often it is noted that a budget is still there.
const refreshBirths = time.Hour

// A birth says that units of a budget may have been granted, by this hub or to this
// cluster.
type birth struct {
	Window limiter.Micros  `json:"window"` // the longest it had
	Seen   limiter.Instant `json:"seen"`   // when it was there last, to refreshBirths
}

// late reports whether no window that was open when the budget was there last may still
// be, whatever clocks show.
func (b birth) late(now limiter.Instant) bool {
	return now > b.Seen.Add(b.Window+limiter.Micros((refreshBirths+sweepAfter).Microseconds()))
}

// known is what the ConfigMap holds.
type known struct {
	// Began is when the births were first written down, 0 when nobody had led before: a
	// budget may have been kept before that.
	Began   limiter.Instant  `json:"began,omitempty"`
	Budgets map[string]birth `json:"budgets"` // by id
}

// Births are which budgets this cluster ever took part in, as their hub or as a member,
// in a ConfigMap: it has room for some thousands. They outlive a budget for as long as its
// longest window lasts. Methods are safe for concurrent use.
type Births struct {
	client corev1client.ConfigMapInterface
	clock  clock.PassiveClock

	mu      sync.Mutex // guards all below; held while the API server is asked
	first   bool       // nobody led before
	version string     // of what was read or written last; "": nothing was
	known   known
}

var _ kubernetes.Births = (*Births)(nil)

// NewBirths returns the births in the namespace of client. Before Begin it takes every
// budget for one that may be old.
func NewBirths(client corev1client.ConfigMapInterface) *Births {
	return &Births{client: client, clock: clock.RealClock{}}
}

// Begin begins a term of this process; first says that nobody led in this cluster before.
func (b *Births) Begin(first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.first, b.version = first, ""
}

// Known implements [kubernetes.Births]. It asks the API server.
func (b *Births) Known(ctx context.Context, id string, window limiter.Micros) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(ctx); err != nil {
		return false, err
	}
	began := b.known.Began
	_, is := b.known.Budgets[id]
	return is || began > 0 && b.now() < began.Add(window), nil
}

// Enter implements [kubernetes.Births].
func (b *Births) Enter(ctx context.Context, id string, window limiter.Micros) error {
	return b.Attend(ctx, map[string]limiter.Micros{id: window}, nil)
}

// Attend notes that units of some budgets may be granted from now on, enters that others
// are still kept here if they ever were, and drops births that no window looks back on.
// The budgets are by id, with their windows. It asks the API server when something is new,
// and once an hour.
func (b *Births) Attend(ctx context.Context, granted, kept map[string]limiter.Micros) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return retry.OnError(retry.DefaultBackoff, raced, func() error {
		if b.version == "" {
			if err := b.load(ctx); err != nil {
				return err
			}
		}
		if !b.attend(granted, kept) {
			return nil
		}
		return b.save(ctx)
	})
}

func (b *Births) attend(granted, kept map[string]limiter.Micros) (changed bool) {
	now := b.now()
	see := func(id string, window limiter.Micros) {
		was := b.known.Budgets[id]
		if window > was.Window || now >= was.Seen.Add(limiter.Micros(refreshBirths.Microseconds())) {
			b.known.Budgets[id], changed = birth{Window: max(was.Window, window), Seen: max(was.Seen, now)}, true
		}
	}
	for id, window := range granted {
		see(id, window)
	}
	for id, window := range kept {
		if _, is := b.known.Budgets[id]; is {
			see(id, window)
		}
	}
	for id, of := range b.known.Budgets {
		if of.late(now) {
			delete(b.known.Budgets, id)
			changed = true
		}
	}
	return changed
}

// load reads the ConfigMap, or makes it. The lock is held.
func (b *Births) load(ctx context.Context) error {
	b.version, b.known = "", known{}
	found, err := b.client.Get(ctx, BirthsConfigMap, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if !b.first {
			b.known.Began = b.now()
		}
		b.known.Budgets = map[string]birth{}
		return b.save(ctx)
	case err != nil:
		return fmt.Errorf("read ConfigMap %s: %w", BirthsConfigMap, err)
	}
	err = json.Unmarshal(found.BinaryData[birthsKey], &b.known)
	if err == nil && b.known.Budgets == nil {
		err = errors.New("it names no budgets")
	}
	if err != nil {
		return fmt.Errorf("binaryData.%s of ConfigMap %s is damaged; delete it: budgets without a record then wait for their next window: %w",
			birthsKey, BirthsConfigMap, err)
	}
	b.version, b.first = found.ResourceVersion, false
	return nil
}

// save writes the ConfigMap if it is still what was read. After an error it has to be read
// again. The lock is held.
func (b *Births) save(ctx context.Context) error {
	data, err := json.Marshal(b.known)
	if err != nil {
		return err
	}
	next := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: BirthsConfigMap, ResourceVersion: b.version},
		BinaryData: map[string][]byte{birthsKey: data},
	}
	write := func() (*corev1.ConfigMap, error) { return b.client.Update(ctx, next, metav1.UpdateOptions{}) }
	if b.version == "" {
		write = func() (*corev1.ConfigMap, error) { return b.client.Create(ctx, next, metav1.CreateOptions{}) }
	}
	b.version = ""
	written, err := write()
	if err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", BirthsConfigMap, err)
	}
	b.version, b.first = written.ResourceVersion, false
	return nil
}

func (b *Births) now() limiter.Instant { return limiter.Instant(b.clock.Now().UnixMicro()) }

// raced reports whether another process wrote first.
func raced(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

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

	"github.com/weir-dev/weir/pkg/federation/birth"
	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/limiter"
)

// BirthsConfigMap is the name of the ConfigMap that holds which budgets are not new.
const BirthsConfigMap = "weir-births-budgets"

const birthsKey = "births"

// refreshBirths is how often it is noted that a budget is still there.
const refreshBirths = time.Hour

// Births are which budgets this cluster ever took part in, as their hub or as a member,
// in a ConfigMap: it has room for some thousands. They outlive a budget for as long as its
// longest window lasts. Methods are safe for concurrent use.
type Births struct {
	client corev1client.ConfigMapInterface
	clock  clock.PassiveClock

	mu      sync.Mutex // guards all below; held while the API server is asked
	first   bool       // nobody led before
	version string     // of the last read or write; "" before the first
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
	return b.known.has(id, window, b.now()), nil
}

// Enter implements [kubernetes.Births].
func (b *Births) Enter(ctx context.Context, id string, window limiter.Micros) error {
	return b.Attend(ctx, map[string]Part{id: {Window: window}}, nil)
}

// Attend notes that units of some budgets may be granted from now on. It enters that others
// are still kept here if they ever were, and drops births that no window looks back on. The
// budgets are by id; kept are their windows. It asks the API server when something is new,
// and once an hour.
func (b *Births) Attend(ctx context.Context, granted map[string]Part, kept map[string]limiter.Micros) error {
	return b.change(ctx, func() bool { return b.known.attend(b.now(), granted, kept) })
}

// Meet notes that a memory of the store that keeps a budget was met, unless another was
// before, and returns what is remembered. A term of 0 notes nothing. It asks the API server
// when something is new.
func (b *Births) Meet(ctx context.Context, id string, term int64) (birth.Birth, error) {
	var of birth.Birth
	noted := false
	err := b.change(ctx, func() bool {
		var was entry
		was, noted = b.known.Budgets[id]
		next := was
		next.Birth = was.Meet(term)
		of = next.Birth
		if was.Equal(of) {
			return false
		}
		b.known.Budgets[id] = next
		return true
	})
	if err == nil && !noted {
		err = fmt.Errorf("ConfigMap %s does not say that this cluster takes part", BirthsConfigMap)
	}
	return of, err
}

// change reads the births, unless they are known, changes them and writes them, if there is
// anything to write.
func (b *Births) change(ctx context.Context, of func() (changed bool)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return retry.OnError(retry.DefaultBackoff, raced, func() error {
		if b.version == "" {
			if err := b.load(ctx); err != nil {
				return err
			}
		}
		if !of() {
			return nil
		}
		return b.save(ctx)
	})
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
		b.known.Budgets = map[string]entry{}
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

// Package recordstest has ConfigMaps in memory that change, fail and lose answers as those of an
// API server may.
package recordstest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// term is records.TermConfigMap; that package's tests import this one.
const term = "weir-term"

// ConfigMaps holds ConfigMaps as an API server does. Before each update it runs the next of
// Disturb. Held and Disturb are not to be used while others call the methods.
type ConfigMaps struct {
	corev1client.ConfigMapInterface
	Held    map[string]*corev1.ConfigMap
	Disturb []func()

	mu      sync.Mutex
	version int
	failure error // of whatever is asked, but for the record
	unheard bool  // the answer to the next update is lost
}

// Holding returns an API server with these ConfigMaps.
func Holding(all ...*corev1.ConfigMap) *ConfigMaps {
	c := &ConfigMaps{Held: map[string]*corev1.ConfigMap{}}
	for _, m := range all {
		c.Held[m.Name] = m
	}
	return c
}

// Get implements corev1client.ConfigMapInterface.
func (c *ConfigMaps) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.ConfigMap, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil && name != term {
		return nil, c.failure
	}
	if c.Held[name] == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), name)
	}
	return c.Held[name].DeepCopy(), nil
}

// Create implements corev1client.ConfigMapInterface.
func (c *ConfigMaps) Create(_ context.Context, m *corev1.ConfigMap, _ metav1.CreateOptions) (*corev1.ConfigMap, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		return nil, c.failure
	}
	if c.Held[m.Name] != nil {
		return nil, apierrors.NewAlreadyExists(corev1.Resource("configmaps"), m.Name)
	}
	return c.Write(m), nil
}

// Update implements corev1client.ConfigMapInterface.
func (c *ConfigMaps) Update(_ context.Context, m *corev1.ConfigMap, _ metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	if len(c.Disturb) > 0 {
		next := c.Disturb[0]
		c.Disturb = c.Disturb[1:]
		next()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil && m.Name != term {
		return nil, c.failure
	}
	if c.Held[m.Name] == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), m.Name)
	}
	if m.ResourceVersion != c.Held[m.Name].ResourceVersion {
		return nil, apierrors.NewConflict(corev1.Resource("configmaps"), m.Name, errors.New("it has changed"))
	}
	if c.unheard {
		c.unheard = false
		c.Write(m)
		return nil, errors.New("the connection is lost")
	}
	return c.Write(m), nil
}

// List implements corev1client.ConfigMapInterface.
func (c *ConfigMaps) List(_ context.Context, o metav1.ListOptions) (*corev1.ConfigMapList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := &corev1.ConfigMapList{}
	label, value, one := strings.Cut(o.LabelSelector, "=")
	for _, name := range slices.Sorted(maps.Keys(c.Held)) {
		switch m := c.Held[name]; {
		case m.Labels[label] == "" || one && m.Labels[label] != value || name <= o.Continue:
		case len(out.Items) == int(o.Limit):
			out.Continue = out.Items[len(out.Items)-1].Name
			return out, nil
		default:
			out.Items = append(out.Items, *m.DeepCopy())
		}
	}
	return out, nil
}

// Delete implements corev1client.ConfigMapInterface.
func (c *ConfigMaps) Delete(_ context.Context, name string, o metav1.DeleteOptions) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := o.Preconditions; p != nil && c.Held[name] != nil && *p.ResourceVersion != c.Held[name].ResourceVersion {
		return apierrors.NewConflict(corev1.Resource("configmaps"), name, errors.New("it has changed"))
	}
	delete(c.Held, name)
	return nil
}

// Write replaces a ConfigMap, whatever its version.
func (c *ConfigMaps) Write(m *corev1.ConfigMap) *corev1.ConfigMap {
	c.version++
	held := m.DeepCopy()
	held.ResourceVersion = strconv.Itoa(c.version)
	c.Held[m.Name] = held
	return held.DeepCopy()
}

// Fail has all calls fail from now on, but those that read or update the record of the term;
// with nil none fails.
func (c *ConfigMaps) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = err
}

// LoseAnswer has the next update be written and its answer be lost.
func (c *ConfigMaps) LoseAnswer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unheard = true
}

// LosesAnswer reports whether no update came since LoseAnswer.
func (c *ConfigMaps) LosesAnswer() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unheard
}

// Names returns the names of all ConfigMaps, sorted.
func (c *ConfigMaps) Names() []string { return slices.Sorted(maps.Keys(c.Held)) }

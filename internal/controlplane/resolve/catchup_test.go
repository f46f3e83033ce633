package resolve_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
)

func TestCatchUp(t *testing.T) {
	t.Run("policies", func(t *testing.T) {
		testCatchUp(t, func(version string) client.Object {
			p := ratelimit("shop", "checkout", nil, 10)
			p.ResourceVersion = version
			return p
		})
	})
	t.Run("budgets", func(t *testing.T) {
		testCatchUp(t, func(version string) client.Object {
			b := shared("shop", "checkout", "acme/checkout", time.Unix(1, 0))
			b.ResourceVersion = version
			return b
		})
	})
	t.Run("pods", func(t *testing.T) {
		testCatchUp(t, func(version string) client.Object {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "checkout", ResourceVersion: version, Labels: map[string]string{v1alpha1.EnforcerLabel: "true"},
			}}
		})
	})
	t.Run("pools", func(t *testing.T) {
		testCatchUp(t, func(version string) client.Object {
			p := pooled("checkout", time.Unix(1, 0), nil)
			p.ResourceVersion = version
			return p
		})
	})
}

// testCatchUp catches up with an object, which at returns at a version.
func testCatchUp(t *testing.T, at func(version string) client.Object) {
	tests := map[string]struct {
		live, cached []client.Object
		waits        bool
	}{
		"there is nothing to know":              {},
		"it is known as it is":                  {live: []client.Object{at("1000")}, cached: []client.Object{at("1000")}},
		"it is known as it was later":           {live: []client.Object{at("999")}, cached: []client.Object{at("1000")}},
		"it is known as it was before":          {live: []client.Object{at("1000")}, cached: []client.Object{at("999")}, waits: true},
		"it is not known yet":                   {live: []client.Object{at("1000")}, waits: true},
		"it is known although it is gone since": {cached: []client.Object{at("1000")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			live, cached := cache(t, tc.live...), cache(t, tc.cached...)
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := resolve.CatchUp(t.Context(), live, cached)
				if tc.waits != (err != nil) {
					t.Fatalf("error %v, want it to wait: %t", err, tc.waits)
				}
				if tc.waits && (!strings.Contains(err.Error(), "shop/checkout") || time.Since(began) != 10*time.Second) {
					t.Errorf("after %s it says %v", time.Since(began), err)
				}
			})
		})
	}
}

// forgetful lists a policy that is deleted before the cache learned of it.
type forgetful struct{ client.Client }

func (f forgetful) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	err := f.Client.List(ctx, into, options...)
	return errors.Join(err, client.IgnoreNotFound(f.Delete(ctx, ratelimit("shop", "checkout", nil, 10))))
}

func TestAPolicyThatIsDeletedIsNotWaitedFor(t *testing.T) {
	if err := resolve.CatchUp(t.Context(), forgetful{cache(t, ratelimit("shop", "checkout", nil, 10))}, cache(t)); err != nil {
		t.Error(err)
	}
}

package certs

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var secretName = types.NamespacedName{Namespace: "weir-system", Name: "weir-certificates"}

func options() Options {
	return Options{
		Secret:             secretName,
		Names:              names,
		MutatingWebhooks:   []string{"weir-injector"},
		ValidatingWebhooks: []string{"weir-validator"},
	}
}

// cluster is an API server with both webhook configurations and no Secret.
func cluster() *fake.ClientBuilder {
	return fake.NewClientBuilder().WithObjects(
		&admissionv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "weir-injector"},
			Webhooks:   []admissionv1.MutatingWebhook{{Name: "namespace.inject.weir.dev"}, {Name: "pod.inject.weir.dev"}},
		},
		&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "weir-validator"},
			Webhooks:   []admissionv1.ValidatingWebhook{{Name: "ratelimitpolicies.validate.weir.dev"}},
		},
	)
}

func mustReconcile(t *testing.T, m *Manager) {
	t.Helper()
	if err := m.reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func readSecret(t *testing.T, c client.Client) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), secretName, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// requirePublished checks that every webhook entry trusts the authority.
func requirePublished(t *testing.T, c client.Client, caBundle []byte) {
	t.Helper()
	mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	err := errors.Join(
		c.Get(t.Context(), types.NamespacedName{Name: "weir-injector"}, mutating),
		c.Get(t.Context(), types.NamespacedName{Name: "weir-validator"}, validating))
	if err != nil {
		t.Fatal(err)
	}
	got := [][]byte{
		mutating.Webhooks[0].ClientConfig.CABundle, mutating.Webhooks[1].ClientConfig.CABundle,
		validating.Webhooks[0].ClientConfig.CABundle,
	}
	for i := range got {
		if !bytes.Equal(got[i], caBundle) {
			t.Errorf("webhook %d trusts %q, want our authority", i, got[i])
		}
	}
}

// TestRacingReplicas lets two replicas find no Secret at the same moment: one
// writes it, and both end up serving the same.
func TestRacingReplicas(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	var creations atomic.Int32
	c := cluster().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if creations.Add(1) <= 2 {
				both.Done()
				both.Wait()
			}
			return w.Create(ctx, o, opts...)
		},
	}).Build()
	replicas := []*Manager{New(c, options()), New(c, options())}
	var done sync.WaitGroup
	for _, m := range replicas {
		// A replica may lose the write of a webhook configuration too; the next look mends it.
		done.Go(func() { _ = m.reconcile(t.Context()) })
	}
	done.Wait()
	for _, m := range replicas {
		mustReconcile(t, m)
	}
	if !bytes.Equal(replicas[0].CABundle(), replicas[1].CABundle()) {
		t.Error("the replicas have different authorities")
	}
	if !replicas[0].memory().equal(replicas[1].memory()) {
		t.Error("the replicas serve different certificates")
	}
	requirePublished(t, c, replicas[0].CABundle())
}

// TestConflictTakesTheWinnersResult damages the Secret and lets another replica
// repair it between this one's read and write.
func TestConflictTakesTheWinnersResult(t *testing.T) {
	var rival *Manager
	intrude := false
	c := cluster().WithInterceptorFuncs(interceptor.Funcs{
		Update: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if intrude {
				intrude = false
				if err := rival.reconcile(ctx); err != nil {
					t.Error(err)
				}
			}
			return w.Update(ctx, o, opts...)
		},
	}).Build()
	m := New(c, options())
	rival = New(c, options())
	mustReconcile(t, m)
	secret := readSecret(t, c)
	secret.Data = nil
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}

	intrude = true
	mustReconcile(t, m)
	if !m.memory().equal(rival.memory()) {
		t.Error("the loser of the race serves something else than the winner wrote")
	}
}

// TestDamageIsRepaired does to the Secret what people and backups do. The
// authority survives, because sidecars have learned it.
func TestDamageIsRepaired(t *testing.T) {
	damage := map[string]func(*testing.T, client.Client, *corev1.Secret){
		"the Secret is deleted": func(t *testing.T, c client.Client, s *corev1.Secret) {
			if err := c.Delete(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		},
		"the data is gone":                     func(t *testing.T, c client.Client, s *corev1.Secret) { store(t, c, s, nil) },
		"the authority's key is gone":          func(t *testing.T, c client.Client, s *corev1.Secret) { cut(t, c, s, authorityKey) },
		"the authority's certificate is gone":  func(t *testing.T, c client.Client, s *corev1.Secret) { cut(t, c, s, authorityCertificate) },
		"the serving key is gone":              func(t *testing.T, c client.Client, s *corev1.Secret) { cut(t, c, s, servingKey) },
		"the serving certificate is cut short": func(t *testing.T, c client.Client, s *corev1.Secret) { cut(t, c, s, servingCertificate) },
	}
	for name, harm := range damage {
		t.Run(name, func(t *testing.T) {
			c := cluster().Build()
			m := New(c, options())
			mustReconcile(t, m)
			before := m.memory()

			harm(t, c, readSecret(t, c))
			mustReconcile(t, m)

			if !m.memory().authority.equal(before.authority) {
				t.Error("the authority changed: injected sidecars no longer trust the controller")
			}
			if !bundleOf(readSecret(t, c).Data).equal(m.memory()) {
				t.Error("the Secret does not hold what is served")
			}
			requirePublished(t, c, m.CABundle())
		})
	}
}

func store(t *testing.T, c client.Client, s *corev1.Secret, data map[string][]byte) {
	t.Helper()
	s.Data = data
	if err := c.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func cut(t *testing.T, c client.Client, s *corev1.Secret, key string) {
	t.Helper()
	s.Data[key] = s.Data[key][:len(s.Data[key])/2]
	store(t, c, s, s.Data)
}

// TestLongRun lets a replica run in simulated time from its start: the API server
// comes late, somebody edits a webhook configuration, and certificates age.
func TestLongRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures atomic.Int32
		failures.Store(3)
		c := cluster().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if failures.Add(-1) >= 0 {
					return errors.New("the API server is not there yet")
				}
				return w.Get(ctx, key, o, opts...)
			},
		}).Build()
		o := options()
		o.Interval = time.Hour // the default would make this millions of looks
		m := New(c, o)
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- m.Start(ctx) }()

		synctest.Wait()
		requireNotReady(t, m)
		after(1*time.Second + 2*time.Second + 4*time.Second)
		select {
		case <-m.Ready():
		default:
			t.Fatal("not ready after three failures and their pauses")
		}
		requirePublished(t, c, m.CABundle())

		overwrite(t, c)
		after(o.Interval)
		requirePublished(t, c, m.CABundle())

		authority := m.memory().authority
		for range 5 {
			serving := m.memory().serving
			after(servingLife*2/3 + o.Interval)
			if m.memory().serving.equal(serving) {
				t.Fatal("the certificate was not renewed after two thirds of its life")
			}
			requireTrusted(t, m.memory().serving, authority, time.Now())
		}
		stop()
		if err := <-stopped; err != nil {
			t.Errorf("Start returned %v, want nil", err)
		}
	})
}

// after lets simulated time pass and waits until all its effects have happened.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func requireNotReady(t *testing.T, m *Manager) {
	t.Helper()
	select {
	case <-m.Ready():
		t.Error("ready without a certificate")
	default:
	}
	if _, err := m.GetCertificate(nil); !errors.Is(err, errNotReady) {
		t.Errorf("GetCertificate returned %v, want %v", err, errNotReady)
	}
	if m.CABundle() != nil {
		t.Error("there is an authority before there is a certificate")
	}
	if n := testutil.CollectAndCount(m); n != 0 {
		t.Errorf("%d metrics before there is a certificate", n)
	}
}

func overwrite(t *testing.T, c client.Client) {
	t.Helper()
	config := &admissionv1.MutatingWebhookConfiguration{}
	if err := c.Get(t.Context(), types.NamespacedName{Name: "weir-injector"}, config); err != nil {
		t.Fatal(err)
	}
	config.Webhooks[1].ClientConfig.CABundle = []byte("somebody else's")
	if err := c.Update(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}

func TestSteadyStateWritesNothing(t *testing.T) {
	writes := 0
	c := cluster().WithInterceptorFuncs(interceptor.Funcs{
		Update: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			writes++
			return w.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			writes++
			return w.Patch(ctx, o, p, opts...)
		},
	}).Build()
	m := New(c, options())
	mustReconcile(t, m)
	writes = 0
	mustReconcile(t, m)
	if writes != 0 {
		t.Errorf("%d writes although all is well", writes)
	}
}

// TestMissingWebhookConfiguration: what can be done is done, and the error says
// what is missing.
func TestMissingWebhookConfiguration(t *testing.T) {
	c := cluster().Build()
	o := options()
	o.MutatingWebhooks = append([]string{"absent"}, o.MutatingWebhooks...)
	m := New(c, o)
	if err := m.reconcile(t.Context()); err == nil || !bytes.Contains([]byte(err.Error()), []byte("absent")) {
		t.Errorf("error %v, want one that names the configuration", err)
	}
	requirePublished(t, c, m.CABundle())
}

func TestExpiryMetric(t *testing.T) {
	clk := clocktesting.NewFakeClock(epoch)
	o := options()
	o.Clock = clk
	m := New(cluster().Build(), o)
	mustReconcile(t, m)
	want := `
# HELP weir_certificate_expiry_timestamp_seconds When the certificate that this replica uses ends, in Unix time.
# TYPE weir_certificate_expiry_timestamp_seconds gauge
weir_certificate_expiry_timestamp_seconds{certificate="authority",secret="weir-system/weir-certificates"} 2.0825856e+09
weir_certificate_expiry_timestamp_seconds{certificate="serving",secret="weir-system/weir-certificates"} 1.7698176e+09
`
	if err := testutil.CollectAndCompare(m, bytes.NewBufferString(want)); err != nil {
		t.Error(err)
	}
}

// TestAFollowerOnlyReads: it has the right to nothing else.
func TestAFollowerOnlyReads(t *testing.T) {
	var written int
	refuse := errors.New("forbidden")
	kube := cluster().Build()
	readOnly := interceptor.NewClient(kube, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			written++
			return refuse
		},
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			written++
			return refuse
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			written++
			return refuse
		},
	})
	o, now := options(), clocktesting.NewFakeClock(time.Now())
	o.Clock = now
	keeper := New(kube, o)
	o.Follow = true
	follower := New(readOnly, o)
	if err := follower.reconcile(t.Context()); err == nil || follower.CABundle() != nil {
		t.Errorf("without a Secret it serves %q, error %v", follower.CABundle(), err)
	}

	mustReconcile(t, keeper)
	mustReconcile(t, follower)
	if !bytes.Equal(follower.CABundle(), keeper.CABundle()) || !follower.memory().serving.equal(keeper.memory().serving) {
		t.Error("it does not serve what the Secret holds")
	}

	now.Step(servingLife + time.Hour)
	if err := follower.reconcile(t.Context()); err == nil {
		t.Error("a certificate that has ended is served again")
	}
	mustReconcile(t, keeper)
	mustReconcile(t, follower)
	if !follower.memory().serving.equal(keeper.memory().serving) {
		t.Error("it does not take a renewed certificate")
	}

	o.Names = []string{"weir-webhook.elsewhere.svc"}
	if err := New(readOnly, o).reconcile(t.Context()); err == nil {
		t.Error("a certificate for other names is served")
	}
	if written > 0 {
		t.Errorf("it wrote %d times", written)
	}
}

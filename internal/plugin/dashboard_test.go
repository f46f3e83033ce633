package plugin

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/plugin/dashboard"
)

// TestDashboard reads by the address that the command prints, from a real API server.
func TestDashboard(t *testing.T) {
	createNamespace(t)
	hot(t)
	out, printed := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := Execute(ctx, []string{"dashboard", "-n", "shop", "--kubeconfig", kubeconfig}, printed, io.Discard)
		printed.Close()
		ended <- err
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/[A-Z2-7]{26}/`).FindString(line)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"objects", http.NoBody)
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	var all dashboard.Objects
	if err := json.NewDecoder(w.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	if len(all.Policies) != 1 || all.Policies[0].Name != "overrides" || len(all.Policies[0].Status.Limits[0].HottestKeys) != 4 || len(all.Errors) != 0 || all.ReadAt.IsZero() || all.Cluster == "" {
		t.Errorf("it shows %+v", all)
	}
	if all.Policies[0].ManagedFields != nil {
		t.Error("it shows managed fields")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ends by %v", err)
	}
	http.DefaultClient.CloseIdleConnections()

	if _, _, err := execute(t, "dashboard", "--kubeconfig", kubeconfig, "--port", "70000"); err == nil || !strings.Contains(err.Error(), "choose another --port") {
		t.Errorf("of a port that cannot be: %v", err)
	}
}

// TestTheDashboardNamesWhatItCannotRead: a user who may read policies alone sees these.
func TestTheDashboardNamesWhatItCannotRead(t *testing.T) {
	createNamespace(t)
	hot(t)
	at := restricted(t, "ratelimitpolicies")
	all, err := at.objects(t.Context())
	if err != nil || len(all.Policies) != 1 || len(all.Errors) != 2 || !strings.HasPrefix(all.Errors[0], "listing concurrencypools: ") {
		t.Errorf("it shows %+v, %v", all, err)
	}
	if _, err := restricted(t).objects(t.Context()); err == nil || strings.Count(err.Error(), "listing ") != 3 {
		t.Errorf("of nothing it shows %v", err)
	}
}

// restricted returns a session of a user who may list these resources only.
func restricted(t *testing.T, resources ...string) *session {
	t.Helper()
	name := strings.ToLower(rand.Text())
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if len(resources) > 0 {
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: resources, Verbs: []string{"list"}}}
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := server.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	at, err := (&cluster{rules: &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}, all: true}).open()
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(at.config)
	config.Impersonate.UserName = name
	if at.Client, err = client.New(config, client.Options{Scheme: at.Scheme()}); err != nil {
		t.Fatal(err)
	}
	return at
}

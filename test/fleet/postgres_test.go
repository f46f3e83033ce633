//go:build fleet

package fleet

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

// startPostgres starts a server for one spec, leaves its credentials in the
// namespace where the controller may read them, and returns the store it is, and its
// process.
func startPostgres(ctx context.Context, namespace string) (v1alpha1.Store, *servers.Server) {
	GinkgoHelper()
	server, err := servers.Postgres(ctx, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Kill)
	const secret = "postgres"
	Expect(kube.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secret, Namespace: namespace},
		StringData: map[string]string{"username": servers.PostgresUser},
	})).To(Succeed())
	const reads = "weir-reads-" + secret
	Expect(kube.Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: reads, Namespace: namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret}, Verbs: []string{"get"}}},
	})).To(Succeed())
	Expect(kube.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reads, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: reads},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "weir-controller", Namespace: "weir-system"}},
	})).To(Succeed())
	return v1alpha1.Store{
		Type: v1alpha1.PostgresStoreType,
		Postgres: &v1alpha1.PostgresStore{
			Address: v1alpha1.HostPort(server.Address), Database: servers.PostgresDatabase, TLS: v1alpha1.TLSDisabled,
			SecretRef: &v1alpha1.SecretReference{Name: secret},
		},
	}, server
}

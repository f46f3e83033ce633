package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// expectHub creates a budget a day of eu-west, which this cluster is, and us-east. It
// leases as us-east does, with the credentials that the hub made, and expects units of the
// open day to be granted and this to be on record. The budget's status then says that its
// coordinator answers and grants.
func (c *cluster) expectHub(t *testing.T, address string) {
	g := NewWithT(t)
	g.Expect(c.client.Create(t.Context(), &v1alpha1.FederatedBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "world"},
		Spec: v1alpha1.FederatedBudgetSpec{
			ID: "acme/checkout", Rate: v1alpha1.BudgetRate{Limit: 1000, Window: "24h"},
			Members: []v1alpha1.BudgetMember{{Name: "eu-west"}, {Name: "us-east"}},
		},
	})).To(Succeed())
	var secret corev1.Secret
	g.Eventually(func() error {
		return c.client.Get(t.Context(), types.NamespacedName{Namespace: system, Name: hub.MemberPrefix + "us-east"}, &secret)
	}, patience).Should(Succeed())

	var hubs hub.Connections
	member, err := hubs.Open(address, secret.Data)
	g.Expect(err).NotTo(HaveOccurred())
	defer member.Close()
	lease := ledger.Command{Op: ledger.Lease, Member: "us-east", Holder: "test", Min: 1, Want: 10}
	g.Eventually(func() (int64, error) {
		lease.Seq++
		grant, err := member.Apply(t.Context(), "acme/checkout", ledger.Params{Window: 24 * 3600 * limiter.Second}, lease)
		lease.Epoch, lease.Granted = grant.Epoch, grant.Granted
		return grant.Granted, err
	}, patience, 100*time.Millisecond).Should(BeNumerically(">", 0))

	var record corev1.ConfigMap
	g.Expect(c.client.Get(t.Context(), types.NamespacedName{Namespace: system, Name: hub.RecordName("acme/checkout")}, &record)).To(Succeed())
	for kind, reason := range map[string]string{
		v1alpha1.ConnectedCondition: v1alpha1.ConnectedReason, v1alpha1.LearningCondition: v1alpha1.LearnedReason,
	} {
		g.Eventually(func() (string, error) {
			var budget v1alpha1.FederatedBudget
			if err := c.client.Get(t.Context(), types.NamespacedName{Namespace: shop, Name: "world"}, &budget); err != nil {
				return "", err
			}
			if condition := meta.FindStatusCondition(budget.Status.Conditions, kind); condition != nil {
				return condition.Reason, nil
			}
			return "", nil
		}, patience).Should(Equal(reason))
	}
}

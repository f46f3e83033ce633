package records

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/records/recordstest"
)

// TestTheRecordsOfCountersThatAreOverAreSwept, unless they were written meanwhile.
func TestTheRecordsOfCountersThatAreOverAreSwept(t *testing.T) {
	maps := recordstest.Holding(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{CountersLabel: "other"}}})
	journals, versions := NewCounters(maps), map[string]string{}
	for _, policy := range []string{"shop/over", "shop/counts", "shop/revived", "shop/over-too", ""} {
		var err error
		if versions[policy], err = journals.Save(t.Context(), policy, []byte(policy), ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := journals.Sweep(t.Context(), func(policy string, data []byte) bool {
		if string(data) != policy {
			t.Errorf("the record of %s is %q", policy, data)
		}
		if policy == "shop/revived" {
			if _, err := journals.Save(t.Context(), policy, data, versions[policy]); err != nil {
				t.Error(err)
			}
		}
		return policy != "shop/counts"
	}); err != nil {
		t.Fatal(err)
	}
	for policy, want := range map[string]bool{"shop/over": false, "shop/counts": true, "shop/revived": true, "shop/over-too": false, "": true} {
		if _, is := maps.Held[CountersName(policy)]; is != want {
			t.Errorf("there is a record of %q: %t, want %t", policy, is, want)
		}
	}
	if maps.Held["other"] == nil {
		t.Error("a ConfigMap of another kind is gone")
	}
}

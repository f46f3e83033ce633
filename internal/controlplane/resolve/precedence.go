package resolve

import (
	"cmp"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// precedence compares which of two objects that cannot both count does: the older one,
// and of two of the same second the one whose namespace, then name, comes first. One
// that was not created yet is the youngest.
func precedence(a, b metav1.Object) int {
	return cmp.Or(cmp.Compare(created(a), created(b)), compareNames(nameOf(a), nameOf(b)))
}

func created(o metav1.Object) int64 {
	at := o.GetCreationTimestamp()
	if at.IsZero() {
		return math.MaxInt64
	}
	return at.Unix()
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

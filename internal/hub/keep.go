package hub

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// managedLabel names the tool that writes an object, by Kubernetes' recommendation.
const managedLabel = "app.kubernetes.io/managed-by"

// Keep writes a renewal into the member's Secret, "namespace/name". It leaves alone one
// that holds another certificate by now, which somebody else renewed, and one that is not
// its to write: the error then says whose it is, and the cure.
func Keep(ctx context.Context, c client.Client, secret string, r Renewal) error {
	namespace, name, _ := strings.Cut(secret, "/")
	key := types.NamespacedName{Namespace: namespace, Name: name}
	var found corev1.Secret
	if err := c.Get(ctx, key, &found); err != nil {
		return fmt.Errorf("read secret %s: %w", key, err)
	}
	if !bytes.Equal(found.Data[CertificateKey], r.Before) {
		return nil
	}
	if by := managedBy(&found); by != "" {
		return fmt.Errorf("secret %s is %s, and the controller does not write it", key, by)
	}
	maps.Copy(found.Data, r.Data)
	err := c.Update(ctx, &found)
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the controller may not update secret %s; allow it: kubectl create rolebinding weir-hub-credentials "+
			"--namespace %s --clusterrole weir-hub-credentials --serviceaccount weir-system:weir-controller "+
			"(the role is for a secret called weir-hub)", key, key.Namespace)
	case err != nil:
		return fmt.Errorf("write secret %s: %w", key, err)
	}
	return nil
}

// managedBy says why the Secret is not the controller's to write; "" when it is.
func managedBy(s *corev1.Secret) string {
	if s.Immutable != nil && *s.Immutable {
		return "immutable"
	}
	if tool := s.Labels[managedLabel]; tool != "" {
		return "managed by " + tool
	}
	if owner := metav1.GetControllerOf(s); owner != nil {
		return "managed by " + owner.Kind + " " + owner.Name
	}
	return ""
}

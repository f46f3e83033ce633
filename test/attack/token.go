package main

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/inject"
)

// A pod of the attackers' that no node runs. It may have a token, and connect.
func (w *world) intrude(ctx context.Context) (*corev1.Pod, error) {
	pod := podOf(evilSpace, intruder, idleImage)
	if err := w.kube.Get(ctx, client.ObjectKeyFromObject(pod), pod); err == nil {
		return pod, nil
	}
	policy := &v1alpha1.RateLimitPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: intruder, Namespace: evilSpace},
		Spec: v1alpha1.RateLimitPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": intruder}},
			Limits:      []v1alpha1.Limit{{Name: "all", Rates: []v1alpha1.Rate{{Limit: intruderLimit, Window: v1alpha1.Duration(victimWindow.String())}}}},
		},
	}
	if err := w.kube.Create(ctx, policy); err != nil {
		return nil, err
	}
	return w.pretend(ctx, intruder)
}

// pretend makes a pod that seems to run.
func (w *world) pretend(ctx context.Context, name string) (*corev1.Pod, error) {
	pod := podOf(evilSpace, name, idleImage)
	pod.Labels = map[string]string{"app": intruder, v1alpha1.EnforcerLabel: "true"}
	pod.Annotations = map[string]string{v1alpha1.InjectKey: v1alpha1.Disabled}
	pod.Spec.NodeName = "elsewhere"
	if err := w.kube.Create(ctx, pod); err != nil {
		return nil, err
	}
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	return pod, w.kube.Status().Patch(ctx, pod, client.MergeFrom(before))
}

// tokenOf returns a token that Kubernetes issues for a pod, or for its service account alone.
func (w *world) tokenOf(ctx context.Context, pod *corev1.Pod, audience string, bound bool) (string, error) {
	r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: new(int64(3600))}}
	if bound {
		r.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}
	got, err := w.cluster.Clients.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, "default", r, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return got.Status.Token, nil
}

func tokenFor(audience string, bound bool) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		pod, err := w.intrude(ctx)
		if err != nil {
			return "", err
		}
		return w.tokenOf(ctx, pod, audience, bound)
	}
}

func tokenOfADeletedPod(ctx context.Context, w *world) (string, error) {
	pod, err := w.pretend(ctx, "gone")
	if err != nil {
		return "", err
	}
	token, err := w.tokenOf(ctx, pod, inject.TokenAudience, true)
	if err != nil {
		return "", err
	}
	if err := w.kube.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		return "", err
	}
	return token, await(ctx, "that the controller knows of the deletion", func() error {
		answer, err := w.connect1(ctx, token)
		if err == nil && !strings.Contains(answer, "Unauthenticated") {
			err = errors.New(answer)
		}
		return err
	})
}

// resigned returns a pod's token with other claims, signed by the cluster's key as an expired
// token is, or by another one.
func resigned(byCluster bool, edit func(map[string]any)) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		token, err := tokenFor(inject.TokenAudience, true)(ctx, w)
		if err != nil {
			return "", err
		}
		parts := strings.Split(token, ".")
		body, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			return "", err
		}
		claims := map[string]any{}
		if err := json.Unmarshal(body, &claims); err != nil {
			return "", err
		}
		edit(claims)
		if body, err = json.Marshal(claims); err != nil {
			return "", err
		}
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if byCluster {
			key, err = w.clusterKey()
		}
		if err != nil {
			return "", err
		}
		text := parts[0] + "." + base64.RawURLEncoding.EncodeToString(body)
		sum := sha256.Sum256([]byte(text))
		signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
		return text + "." + base64.RawURLEncoding.EncodeToString(signature), err
	}
}

// clusterKey reads the key by which the API server signs tokens.
func (w *world) clusterKey() (*rsa.PrivateKey, error) {
	text, err := os.ReadFile(filepath.Join(w.dir, "state", "service-accounts.key"))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	return x509.ParsePKCS1PrivateKey(block.Bytes)
}

func unsigned(ctx context.Context, w *world) (string, error) {
	token, err := tokenFor(inject.TokenAudience, true)(ctx, w)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + strings.Split(token, ".")[1] + ".", nil
}

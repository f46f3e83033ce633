package devcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	sigsyaml "sigs.k8s.io/yaml"
)

// install applies config/default as a user would, with two changes. The webhooks are
// reached at their port on this machine, and the controller's Deployment is returned as
// a process to start instead of being created.
func install(ctx context.Context, cfg Config, c *Cluster) (*Controller, error) {
	rendered, err := kubectl(ctx, cfg.Assets, nil, "kustomize", filepath.Join(cfg.Root, "config", "default"))
	if err != nil {
		return nil, err
	}
	var known []controllerPorts
	var replicas []string
	for range 1 + cfg.Replicas {
		ports, err := newControllerPorts()
		if err != nil {
			return nil, err
		}
		known, replicas = append(known, ports), append(replicas, "127.0.0.1:"+ports.fleet)
	}
	if cfg.Replicas > 0 {
		cfg.ControllerArgs = append([]string{"--fleet-replicas=" + strings.Join(replicas, ",")}, cfg.ControllerArgs...)
	}
	manifests, deployment, err := adapt(rendered, known[0].webhook)
	if err != nil {
		return nil, err
	}
	if err := c.Apply(ctx, manifests); err != nil {
		return nil, err
	}
	token, err := c.controllerToken(ctx, deployment)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(c.state, "controller.kubeconfig")
	if err := c.control.writeKubeconfig(kubeconfig, token); err != nil {
		return nil, err
	}
	c.another = func(program string) (*Controller, error) {
		n := len(c.replicas) + 1
		if n == len(known) {
			more, err := newControllerPorts()
			if err != nil {
				return nil, err
			}
			known = append(known, more)
		}
		cfg := cfg
		cfg.Controller = program
		return newController(cfg, deployment, kubeconfig, known[n]), nil
	}
	return newController(cfg, deployment, kubeconfig, known[0]), nil
}

// adapt takes the controller's Deployment out of the manifests and points the
// webhooks at a port of this machine.
func adapt(rendered []byte, webhookPort string) (manifests []byte, deployment *appsv1.Deployment, err error) {
	var kept bytes.Buffer
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(rendered), 4096)
	for {
		var o unstructured.Unstructured
		if err := documents.Decode(&o.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
		switch o.GetKind() {
		case "Deployment":
			deployment = &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, deployment); err != nil {
				return nil, nil, err
			}
			continue
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			if err := redirect(&o, webhookPort); err != nil {
				return nil, nil, err
			}
		}
		document, err := sigsyaml.Marshal(o.Object)
		if err != nil {
			return nil, nil, err
		}
		fmt.Fprintf(&kept, "---\n%s", document)
	}
	if deployment == nil {
		return nil, nil, errors.New("config/default holds no Deployment of the controller")
	}
	return kept.Bytes(), deployment, nil
}

// redirect replaces the Service of each webhook by a URL.
func redirect(o *unstructured.Unstructured, port string) error {
	webhooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, w := range webhooks {
		webhook := w.(map[string]any)
		path, _, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if err != nil {
			return err
		}
		webhook["clientConfig"] = map[string]any{"url": "https://127.0.0.1:" + port + path}
	}
	return unstructured.SetNestedSlice(o.Object, webhooks, "webhooks")
}

// controllerToken returns a token of the controller's service account, so that
// it has the rights of config/rbac and no others.
func (c *Cluster) controllerToken(ctx context.Context, d *appsv1.Deployment) (string, error) {
	got, err := c.Clients.CoreV1().ServiceAccounts(d.Namespace).CreateToken(ctx, d.Spec.Template.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](24 * 3600)}},
		metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return got.Status.Token, nil
}

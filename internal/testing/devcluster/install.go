package devcluster

import (
	"bytes"
	"cmp"
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

// Names of the Deployments in config/manager.
const (
	controllerName = "weir-controller"
	webhookName    = "weir-webhook"
)

// install applies config/default as a user would, with two changes. The webhooks are
// reached at their port on this machine, and Deployments become processes to start instead
// of being created.
func install(ctx context.Context, cfg Config, c *Cluster) error {
	rendered, err := kubectl(ctx, cfg.Assets, nil, "kustomize", filepath.Join(cfg.Root, "config", "default"))
	if err != nil {
		return err
	}
	var known []controllerPorts
	var replicas []string
	for range 1 + cfg.Replicas {
		ports, err := newControllerPorts()
		if err != nil {
			return err
		}
		known, replicas = append(known, ports), append(replicas, "127.0.0.1:"+ports.fleet)
	}
	if cfg.Replicas > 0 {
		cfg.ControllerArgs = append([]string{"--fleet-replicas=" + strings.Join(replicas, ",")}, cfg.ControllerArgs...)
	}
	hooks, err := newControllerPorts()
	if err != nil {
		return err
	}
	manifests, deployments, err := adapt(rendered, hooks.webhook)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, manifests); err != nil {
		return err
	}
	accounts := map[string]string{} // their kubeconfigs
	for name, d := range deployments {
		if accounts[name], err = c.accountOf(ctx, d); err != nil {
			return err
		}
	}
	hooks.fleet = known[0].fleet // where sidecars connect
	ofHooks := cfg
	ofHooks.Controller = cmp.Or(cfg.Webhooks, cfg.Controller)
	c.Webhooks = newController(ofHooks, deployments[webhookName], accounts[webhookName], hooks)
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
		return newController(cfg, deployments[controllerName], accounts[controllerName], known[n]), nil
	}
	c.Controller = newController(cfg, deployments[controllerName], accounts[controllerName], known[0])
	return nil
}

// adapt takes the Deployments out of the manifests and points the webhooks at a port of
// this machine.
func adapt(rendered []byte, webhookPort string) (manifests []byte, deployments map[string]*appsv1.Deployment, err error) {
	var kept bytes.Buffer
	deployments = map[string]*appsv1.Deployment{}
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
			deployment := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, deployment); err != nil {
				return nil, nil, err
			}
			deployments[deployment.Name] = deployment
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
	for _, name := range []string{controllerName, webhookName} {
		if deployments[name] == nil {
			return nil, nil, fmt.Errorf("config/default holds no Deployment %s", name)
		}
	}
	return kept.Bytes(), deployments, nil
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

// accountOf writes a kubeconfig with a token of a Deployment's service account, so that its
// process has the rights of config/rbac and no others.
func (c *Cluster) accountOf(ctx context.Context, d *appsv1.Deployment) (string, error) {
	got, err := c.Clients.CoreV1().ServiceAccounts(d.Namespace).CreateToken(ctx, d.Spec.Template.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](24 * 3600)}},
		metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.state, d.Name+".kubeconfig")
	return path, c.control.writeKubeconfig(path, got.Status.Token)
}

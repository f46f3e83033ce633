package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// policy creates a policy as a dry run.
func policy(spec string) func(context.Context, *world) (string, error) {
	return object(policyText(spec))
}

func policyText(spec string) string {
	return `{apiVersion: weir.dev/v1alpha1, kind: RateLimitPolicy, metadata: {generateName: evil-}, spec: {podSelector: {matchLabels: {app: none}}, ` + spec[1:] + `}`
}

// object creates an object as a dry run, as the editor.
func object(text string) func(context.Context, *world) (string, error) {
	return objectAs(evilUser, text)
}

func objectAs(user, text string) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		o, err := decode(text)
		if err != nil {
			return "", err
		}
		return w.tryAs(ctx, user, func(c client.Client) error {
			return c.Create(ctx, o, client.DryRunAll, client.FieldValidation("Warn"))
		}, nil)
	}
}

func decode(text string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		return nil, fmt.Errorf("%w: %.200s", err, text)
	}
	if o.GetNamespace() == "" {
		o.SetNamespace(evilSpace)
	}
	return o, nil
}

// settles creates a policy, and returns its status once that says
// whether the store is reached. It selects no pod, so no sidecar connects.
func settles(spec string) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		o, err := decode(policyText(spec))
		if err != nil {
			return "", err
		}
		if answer, err := w.try(ctx, func(c client.Client) error { return c.Create(ctx, o) }, nil); err != nil || strings.HasPrefix(answer, "error") {
			return answer, err
		}
		defer func() { _ = w.kube.Delete(context.WithoutCancel(ctx), o) }()
		status := ""
		err = await(ctx, "a status", func() error {
			if err := w.kube.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			text, err := json.Marshal(o.Object["status"])
			status = string(text)
			if err == nil && !strings.Contains(status, "StoreReachable") {
				err = fmt.Errorf("it is %s", status)
			}
			return err
		})
		return status, err
	}
}

// listener names a store that answers with a text.
func listener(text string) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		defer l.Close()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					_, _ = conn.Write([]byte(text))
					_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
					_, _ = conn.Read(make([]byte, 4<<10))
				}()
			}
		}()
		return settles(`{store: {type: Redis, redis: {address: "`+l.Addr().String()+`"}}, limits: [`+aLimit+`]}`)(ctx, w)
	}
}

func apiServerAsStore(ctx context.Context, w *world) (string, error) {
	return settles(`{store: {type: Redis, redis: {address: "`+strings.TrimPrefix(w.cluster.Config.Host, "https://")+`"}}, limits: [`+aLimit+`]}`)(ctx, w)
}

func writeStatus(ctx context.Context, w *world) (string, error) {
	p := &v1alpha1.RateLimitPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName, Namespace: evilSpace}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"store":{"serving":{"type":"Redis"}}}}`))
	return w.try(ctx, func(c client.Client) error { return c.Status().Patch(ctx, p, patch) }, nil)
}

func readSecrets(ctx context.Context, w *world) (string, error) {
	return w.try(ctx, func(c client.Client) error { return c.List(ctx, &corev1.SecretList{}, client.InNamespace(weirSpace)) }, nil)
}

// logLines has the controller log texts of an attacker, and counts lines of the log that are theirs.
func logLines(ctx context.Context, w *world) (string, error) {
	_, err := w.try(ctx, func(c client.Client) error {
		pod := podOf(evilSpace, "", idleImage)
		pod.GenerateName = "evil-"
		pod.Annotations = map[string]string{v1alpha1.ModeAnnotation: "x\n" + forged + "}\n", v1alpha1.InjectKey: "x\n" + forged + "}\n"}
		return c.Create(ctx, pod)
	}, nil)
	if err != nil {
		return "", err
	}
	answer, err := w.ask(ctx, w.webhooks+"/inject-v1-pod", "application/json", strings.NewReader("{\"kind\":\"x\\n"+forged+"\"}"))
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(w.logs, "webhook.log"))
	if err != nil {
		return "", err
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, forged) {
			n++
		}
	}
	return fmt.Sprintf("%d lines; %s", n, answer), nil
}

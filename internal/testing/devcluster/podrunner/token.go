package podrunner

import (
	"context"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// rootOf returns the directory that stands for a container's root.
func (p *pod) rootOf(container string) string { return filepath.Join(p.dir, container) }

// A token is one service-account token that a container of the pod mounts.
type token struct {
	audiences []string
	lifetime  int64 // seconds
	file      string
}

// tokens returns all projected service-account tokens of the pod.
func (p *pod) tokens() []token {
	var found []token
	for _, c := range p.containers() {
		for _, m := range c.spec.VolumeMounts {
			for _, source := range p.projections(m.Name) {
				t := source.ServiceAccountToken
				if t == nil {
					continue
				}
				wanted := token{
					lifetime: ptr.Deref(t.ExpirationSeconds, 3600),
					file:     filepath.Join(p.rootOf(c.spec.Name), m.MountPath, t.Path),
				}
				if t.Audience != "" {
					wanted.audiences = []string{t.Audience}
				}
				found = append(found, wanted)
			}
		}
	}
	return found
}

func (p *pod) projections(volume string) []corev1.VolumeProjection {
	for _, v := range p.object.Spec.Volumes {
		if v.Name == volume && v.Projected != nil {
			return v.Projected.Sources
		}
	}
	return nil
}

// writeTokens requests and writes all tokens. It tries until it succeeds and
// returns false when ctx ended before that.
func (p *pod) writeTokens(ctx context.Context) bool {
	for {
		err := os.MkdirAll(p.dir, 0o755)
		for _, t := range p.tokens() {
			if err == nil {
				err = p.writeToken(ctx, t)
			}
		}
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			p.Log.Error("cannot write tokens", "pod", p.object.Name, "error", err)
		}
		if !sleep(ctx, time.Second) {
			return false
		}
	}
}

func (p *pod) writeToken(ctx context.Context, t token) error {
	account := p.object.Spec.ServiceAccountName
	got, err := p.Client.CoreV1().ServiceAccounts(p.object.Namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			Audiences:         t.audiences,
			ExpirationSeconds: &t.lifetime,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.object.Name, UID: p.object.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(t.file), 0o755); err != nil {
		return err
	}
	fresh := t.file + ".new"
	if err := os.WriteFile(fresh, []byte(got.Status.Token), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, t.file) // readers see the old token or the new one
}

// keepTokens rewrites all tokens when the first of them has lived for four
// fifths of its time, as a kubelet does.
func (p *pod) keepTokens(ctx context.Context) {
	tokens := p.tokens()
	if len(tokens) == 0 {
		return
	}
	shortest := tokens[0].lifetime
	for _, t := range tokens {
		shortest = min(shortest, t.lifetime)
	}
	for sleep(ctx, time.Duration(shortest)*time.Second*4/5) {
		p.writeTokens(ctx)
	}
}

// sleep waits for d and returns false when ctx ended before that.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

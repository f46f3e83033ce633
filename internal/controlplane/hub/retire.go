package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotations of a member's Secret.
const (
	// unusedAnnotation is on one by which nobody has authenticated yet. Those that older
	// versions made do not have it, and count as used.
	unusedAnnotation = "weir.dev/unused"
	// unnamedAnnotation says since when no budget names the member, in RFC 3339.
	unnamedAnnotation = "weir.dev/unnamed-since"
)

const (
	// unusedLife is how long a Secret outlives the budgets that named its member, when it
	// was never used: enough to apply a budget again that was deleted by mistake.
	unusedLife = 24 * time.Hour
	// maxUnused is how many of these there are at most.
	maxUnused = 256
	pageSize  = 500 // of one list of Secrets
)

// secrets returns the Secrets of members, by their names.
func (c *Credentials) secrets(ctx context.Context) (map[string]*corev1.Secret, error) {
	out, page := map[string]*corev1.Secret{}, ""
	for {
		var found corev1.SecretList
		err := c.config.Client.List(ctx, &found, client.InNamespace(c.config.Namespace), client.HasLabels{MemberLabel},
			client.Limit(pageSize), client.Continue(page))
		if err != nil {
			return nil, fmt.Errorf("list the Secrets of members: %w", err)
		}
		for i := range found.Items {
			if s := &found.Items[i]; s.Name == MemberPrefix+s.Labels[MemberLabel] {
				out[s.Labels[MemberLabel]] = s
			}
		}
		if page = found.Continue; page == "" {
			return out, nil
		}
	}
}

// used notes that the member has authenticated itself. It does not block.
func (c *Credentials) used(member string) {
	if _, known := c.users.LoadOrStore(member, struct{}{}); !known {
		c.Refresh()
	}
}

// noteNamed notes in the Secret that a budget names the member, and whether it was used. It
// reports whether that is news.
func (c *Credentials) noteNamed(member string, s *corev1.Secret) bool {
	_, unnamed := s.Annotations[unnamedAnnotation]
	delete(s.Annotations, unnamedAnnotation)
	return c.noteUse(member, s) || unnamed
}

func (c *Credentials) noteUse(member string, s *corev1.Secret) bool {
	_, unused := s.Annotations[unusedAnnotation]
	if _, now := c.users.Load(member); !now || !unused {
		return false
	}
	delete(s.Annotations, unusedAnnotation)
	return true
}

// retire deletes Secrets that nobody used, of members that no budget has named for a day, and
// those that were left longest when there are too many. It notes since when they are.
func (c *Credentials) retire(ctx context.Context, found map[string]*corev1.Secret) error {
	named := map[string]bool{}
	for _, member := range c.config.Budgets.Members() {
		named[member] = true
	}
	now := c.config.Clock.Now()
	var errs []error
	var left []*corev1.Secret
	for member, s := range found {
		noted := c.noteUse(member, s)
		if _, unused := s.Annotations[unusedAnnotation]; named[member] || !unused && !noted {
			continue
		}
		if s.Annotations[unnamedAnnotation] == "" && !noted {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, unnamedAnnotation, now.UTC().Format(time.RFC3339))
			noted = true
		}
		if noted {
			errs = append(errs, gone(c.config.Client.Update(ctx, s)))
		}
		if _, unused := s.Annotations[unusedAnnotation]; unused {
			left = append(left, s)
		}
	}
	slices.SortFunc(left, func(a, b *corev1.Secret) int {
		return cmp.Or(unnamedSince(b).Compare(unnamedSince(a)), cmp.Compare(a.Name, b.Name))
	})
	for i, s := range left {
		if i < maxUnused && now.Sub(unnamedSince(s)) < unusedLife {
			continue
		}
		errs = append(errs, gone(c.config.Client.Delete(ctx, s, client.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion})))
	}
	return errors.Join(errs...)
}

// unnamedSince returns when no budget named the member any more; long ago when that cannot
// be read.
func unnamedSince(s *corev1.Secret) time.Time {
	at, _ := time.Parse(time.RFC3339, s.Annotations[unnamedAnnotation])
	return at
}

// gone returns nil for a Secret that is gone or was written meanwhile: the next look finds it as
// it is.
func gone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

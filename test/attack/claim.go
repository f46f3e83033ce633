package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/internal/controlplane/hub"
)

// openBudget makes the victim's budget and one of the attackers', once, and returns when their
// members have Secrets.
func (w *world) openBudget(ctx context.Context) error {
	for _, b := range []struct{ namespace, name, id, members string }{
		{victimSpace, "world", budgetID, fmt.Sprintf("{name: %s}, {name: %s}, {name: %s}", cluster, foe, ally)},
		{evilSpace, "own", evilBudget, fmt.Sprintf("{name: %s}, {name: %s}", cluster, evilMember)},
	} {
		o, err := decode(fmt.Sprintf(`{apiVersion: weir.dev/v1alpha1, kind: FederatedBudget, metadata: {name: %s, namespace: %s}, spec: {id: %s, rate: {limit: %d, window: 5s}, members: [%s]}}`,
			b.name, b.namespace, b.id, budgetLimit, b.members))
		if err != nil {
			return err
		}
		if err := w.kube.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return await(ctx, "the Secrets of members", func() error {
		for _, name := range []string{foe, ally, evilMember} {
			if _, err := w.memberSecret(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *world) memberSecret(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	return secret, w.kube.Get(ctx, client.ObjectKey{Namespace: weirSpace, Name: hub.MemberPrefix + name}, secret)
}

// theft creates a budget with the victim's id, which is older: Kubernetes knows of the age of
// objects in seconds.
func theft(ctx context.Context, w *world) (string, error) {
	if err := w.openBudget(ctx); err != nil {
		return "", err
	}
	sleepUntil(ctx, time.Now().Add(time.Second))
	o, err := decode(`{apiVersion: weir.dev/v1alpha1, kind: FederatedBudget, metadata: {name: theft}, spec: {id: ` + budgetID + `, rate: {limit: 1, window: 5s}, members: [{name: ` + cluster + `}, {name: ` + evilMember + `}]}}`)
	if err != nil {
		return "", err
	}
	if answer, err := w.try(ctx, func(c client.Client) error { return c.Create(ctx, o) }, nil); err != nil || strings.HasPrefix(answer, "error") {
		return answer, err
	}
	defer func() { _ = w.kube.Delete(context.WithoutCancel(ctx), o) }()
	accepted := ""
	if err := await(ctx, "the condition Accepted", func() (err error) {
		if accepted, err = w.accepted(ctx, o); err == nil && accepted == "Unknown" {
			err = errors.New("it is not known yet")
		}
		return err
	}); err != nil {
		return "", err
	}
	victims := o.DeepCopy()
	victims.SetName("world")
	victims.SetNamespace(victimSpace)
	still, err := w.accepted(ctx, victims)
	return "Accepted=" + accepted + "; victim Accepted=" + still, err
}

// accepted returns the status of the condition Accepted of an object.
func (w *world) accepted(ctx context.Context, o *unstructured.Unstructured) (string, error) {
	if err := w.kube.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return "", err
	}
	all, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	if err != nil {
		return "", err
	}
	for _, c := range all {
		if c, ok := c.(map[string]any); ok && c["type"] == "Accepted" {
			return fmt.Sprint(c["status"]), nil
		}
	}
	return "", errors.New("there is no condition Accepted")
}

// mostSecrets is how many Secrets of members the budgets of a namespace may have.
const mostSecrets = 64

// floodBudget returns one of many budgets, with members that no other has.
func floodBudget(i, members int) (*unstructured.Unstructured, error) {
	all := make([]string, members)
	for j := range all {
		all[j] = fmt.Sprintf("{name: flood-%d-%d}", i, j)
	}
	return decode(fmt.Sprintf(`{apiVersion: weir.dev/v1alpha1, kind: FederatedBudget, metadata: {name: flood-%d}, spec: {id: evil/flood-%d, rate: {limit: 100, window: 5s}, members: [{name: %s}, %s]}}`,
		i, i, cluster, strings.Join(all, ", ")))
}

// judged is nil when each budget has been judged, and as many Secrets are made as may be.
func (w *world) judged(ctx context.Context, budgets []*unstructured.Unstructured) error {
	for _, o := range budgets {
		if _, err := w.accepted(ctx, o); err != nil {
			return err
		}
	}
	n, err := w.membersOf(ctx, "flood-")
	if err == nil && n < mostSecrets-1 { // one is that of evilMember
		err = fmt.Errorf("there are %d", n)
	}
	return err
}

// secretFlood has members named in many budgets, and counts the Secrets that are made.
func secretFlood(budgets, members int) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		if err := w.openBudget(ctx); err != nil {
			return "", err
		}
		names := make([]*unstructured.Unstructured, 0, budgets)
		defer func() {
			for _, o := range names {
				_ = w.kube.Delete(context.WithoutCancel(ctx), o)
			}
		}()
		for i := range budgets {
			o, err := floodBudget(i, members)
			if err == nil {
				err = w.kube.Create(ctx, o)
			}
			if err != nil {
				return "", err
			}
			names = append(names, o)
		}
		if err := await(ctx, "that all Secrets are made for which there is room", func() error { return w.judged(ctx, names) }); err != nil {
			return "", err
		}
		sleepUntil(ctx, time.Now().Add(2*time.Second)) // more would come
		n, err := w.membersOf(ctx, "flood-")
		if err != nil {
			return "", err
		}
		victims := w.victimsSecrets(ctx)
		if n > mostSecrets {
			return fmt.Sprintf("%d Secrets; %s", n, victims), nil
		}
		return fmt.Sprintf("at most %d: %d; %s", mostSecrets, n, victims), nil
	}
}

// victimsSecrets says whether the Secrets of the victim's members are there.
func (w *world) victimsSecrets(ctx context.Context) string {
	for _, name := range []string{foe, ally} {
		if _, err := w.memberSecret(ctx, name); err != nil {
			return err.Error()
		}
	}
	return "the victim's stay"
}

func (w *world) membersOf(ctx context.Context, prefix string) (n int, err error) {
	var all corev1.SecretList
	err = w.kube.List(ctx, &all, client.InNamespace(weirSpace), client.HasLabels{hub.MemberLabel})
	for i := range all.Items {
		if strings.HasPrefix(all.Items[i].Labels[hub.MemberLabel], prefix) {
			n++
		}
	}
	return n, err
}

// budgetSettles creates a budget and returns its status once it has conditions.
func budgetSettles(text string) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		o, err := decode(text)
		if err != nil {
			return "", err
		}
		if answer, err := w.try(ctx, func(c client.Client) error { return c.Create(ctx, o) }, nil); err != nil || strings.HasPrefix(answer, "error") {
			return answer, err
		}
		defer func() { _ = w.kube.Delete(context.WithoutCancel(ctx), o) }()
		if err := await(ctx, "the condition Accepted", func() error {
			_, err := w.accepted(ctx, o)
			return err
		}); err != nil {
			return "", err
		}
		return fmt.Sprint("status ", o.Object["status"]), nil
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/testing/devcluster/link"
)

const (
	budgetLimit  = 500 // of budget.yaml
	budgetWindow = 10 * time.Second
	budgetLoad   = 60 // requests a second in each cluster; both together ask for more than twice the limit
	system       = "weir-system"
	hubSecret    = "weir-hub"

	// In the last of every cycle of windows the two clusters are cut off from each other.
	cutEvery, cutFor = 6, 2
)

// A budgetShow shows one budget over two clusters, which lose sight of each other now
// and then.
type budgetShow struct {
	*demo
	other *site // beside the one of the demo, which keeps the budget
	link  *link.Link
	rows  []budgetRow
}

func (d *budgetShow) prepare(ctx context.Context) (err error) {
	d.step("starting a second cluster, us-east, beside the first one, eu-west")
	of := d.options
	of.dir = filepath.Join(d.dir, "us-east")
	d.other = newSite(of, "us-east")
	if err := d.other.boot(ctx); err != nil {
		return err
	}
	d.link, err = link.Open(d.cluster.Controller.FederationAddress())
	return err
}

func (d *budgetShow) stop() {
	if d.link != nil {
		d.link.Close()
	}
	if d.other != nil {
		d.other.close()
	}
}

func (d *budgetShow) play(ctx context.Context) error {
	d.step("applying hack/demo/app.yaml and budget.yaml in eu-west: it keeps the budget")
	if err := d.deploy(ctx, application(d.tally.Address(), "")+nextDocument+budget("", ""), budgetLoad); err != nil {
		return err
	}
	d.step("applying both in us-east, with the credentials that eu-west made for it: it reaches eu-west over a link")
	app := application(d.other.tally.Address(), "")
	if err := d.other.cluster.Apply(ctx, []byte(app)); err != nil {
		return err
	}
	if err := d.introduce(ctx); err != nil {
		return err
	}
	if err := d.other.deploy(ctx, app+nextDocument+budget(d.link.Address(), hubSecret), budgetLoad); err != nil {
		return err
	}
	d.step("4 pods are ready in each cluster; sending %d requests a second to each", budgetLoad)
	d.show(ctx)
	d.summarize()
	return judge(d.rows, d.windows)
}

// introduce copies the Secret that the hub made for the member, and lets its controller
// read it.
func (d *budgetShow) introduce(ctx context.Context) error {
	made, err := d.credentials(ctx)
	if err != nil {
		return err
	}
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: hubSecret}, Type: made.Type, Data: made.Data}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "weir-hub-credentials"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "weir-hub-credentials"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "weir-controller", Namespace: system}},
	}
	clients := d.other.cluster.Clients
	_, noSecret := clients.CoreV1().Secrets(namespace).Create(ctx, own, metav1.CreateOptions{})
	_, noBinding := clients.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{})
	return errors.Join(noSecret, noBinding)
}

// credentials waits until the hub has made them.
func (d *budgetShow) credentials(ctx context.Context) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		made, err := d.cluster.Clients.CoreV1().Secrets(system).Get(ctx, "weir-member-"+d.other.name, metav1.GetOptions{})
		if err == nil {
			return made, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("eu-west made no credentials for us-east: %w", err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// show adds a row for each window, and cuts and heals the link, until ctx is done or the
// windows to judge are whole.
func (d *budgetShow) show(ctx context.Context) {
	ctx, cancel := d.limited(ctx)
	defer cancel()
	d.printHints()
	open := time.Now().Truncate(budgetWindow).Add(budgetWindow) // windows begin at multiples of their length
	for n := 0; ; n++ {
		if !pause(ctx, open) {
			return
		}
		cut := n%cutEvery >= cutEvery-cutFor
		if cut {
			d.link.Cut()
		} else {
			d.link.Heal()
		}
		if n > 0 {
			if !pause(ctx, open.Add(settle)) {
				return
			}
			row := d.observe(open.Add(-budgetWindow))
			row.cut = (n-1)%cutEvery >= cutEvery-cutFor
			row.first = n == 1
			d.rows = append(d.rows, row)
			d.print(ctx, row)
			if d.windows > 0 && len(whole(d.rows)) >= d.windows {
				return
			}
		}
		open = open.Add(budgetWindow)
	}
}

// pause returns at an instant, or reports that ctx was done before.
func pause(ctx context.Context, until time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(until)):
		return true
	}
}

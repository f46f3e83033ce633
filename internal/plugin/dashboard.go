package plugin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/plugin/dashboard"
)

func newDashboard() *cobra.Command {
	port := 0
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve a page that shows policies, pools and budgets while they work",
		Long: "Serve a page on this machine that shows the policies, pools and budgets of a namespace, or of all: who is limited, the overshoot " +
			"and the unused part of each limit over time, a pool's limit against latency, and the hottest keys. The page only reads, asks " +
			"the API server every two seconds while it is open, and loads nothing from elsewhere. It has the rights of your kubeconfig, " +
			"and its address has a secret, which keeps other users of this machine out.\n\n" +
			"It reads ratelimitpolicies, concurrencypools and federatedbudgets, and ends by Ctrl+C.",
		Example: "  kubectl weir dashboard -A\n  kubectl weir dashboard -n shop --port 8090",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().IntVar(&port, "port", port, "port of 127.0.0.1 to listen on; 0: any that is free")
	where := newCluster(cmd)
	cmd.RunE = where.run(func(cmd *cobra.Command, at *session, _ []string) error {
		listener, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return fmt.Errorf("listening: %w; choose another --port, or none for any that is free", err)
		}
		secret := rand.Text()
		cmd.Printf("The dashboard is at http://%s/%s/. Ctrl+C ends it.\n", listener.Addr(), secret)
		return serveDashboard(cmd.Context(), listener, dashboard.New(secret, at.objects))
	})
	return cmd
}

// serveDashboard serves until ctx is done.
func serveDashboard(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: patience, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// objects reads what the dashboard shows. It fails when nothing can be read.
func (s *session) objects(ctx context.Context) (*dashboard.Objects, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var (
		policies v1alpha1.RateLimitPolicyList
		pools    v1alpha1.ConcurrencyPoolList
		budgets  v1alpha1.FederatedBudgetList
		failed   []error
	)
	lists := []struct {
		name string
		into client.ObjectList
	}{{"ratelimitpolicies", &policies}, {"concurrencypools", &pools}, {"federatedbudgets", &budgets}}
	for _, list := range lists {
		err := s.List(ctx, list.into, client.InNamespace(s.namespace))
		if err == nil {
			err = meta.EachListItem(list.into, withoutManagedFields)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("listing %s: %w", list.name, err))
		}
	}
	if len(failed) == len(lists) {
		return nil, errors.Join(failed...)
	}
	all := &dashboard.Objects{Cluster: s.config.Host, ReadAt: time.Now(), Policies: policies.Items, Pools: pools.Items, Budgets: budgets.Items}
	for _, err := range failed {
		all.Errors = append(all.Errors, err.Error())
	}
	return all, nil
}

// withoutManagedFields removes what no page shows, and is the most of an object.
func withoutManagedFields(o runtime.Object) error {
	named, err := meta.Accessor(o)
	if err == nil {
		named.SetManagedFields(nil)
	}
	return err
}

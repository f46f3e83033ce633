package plugin

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// A cluster is the one that the flags and the kubeconfig name.
type cluster struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
	all       bool // namespaces
	timeout   time.Duration
}

// newCluster adds the flags of kubectl that choose a cluster and one namespace or all.
func newCluster(cmd *cobra.Command) *cluster {
	c := newNamespaced(cmd)
	cmd.Flags().BoolVarP(&c.all, "all-namespaces", "A", false, "all namespaces")
	return c
}

// newNamespaced adds the flags of kubectl that choose a cluster and a namespace.
func newNamespaced(cmd *cobra.Command) *cluster {
	c := &cluster{rules: clientcmd.NewDefaultClientConfigLoadingRules()}
	flags := cmd.Flags()
	flags.StringVar(&c.rules.ExplicitPath, "kubeconfig", "", "path of the kubeconfig")
	flags.StringVar(&c.overrides.CurrentContext, "context", "", "context of the kubeconfig")
	flags.DurationVar(&c.timeout, "request-timeout", 30*time.Second, "how long the API server may take for one answer; 0: any time")
	flags.StringVarP(&c.overrides.Context.Namespace, "namespace", "n", "", "namespace; default: that of the context")
	return c
}

// run returns the function of a command that begins with a session.
func (c *cluster) run(do func(cmd *cobra.Command, at *session, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		at, err := c.open()
		if err != nil {
			return err
		}
		return do(cmd, at, args)
	}
}

// A session is with the cluster that was chosen.
type session struct {
	client.Client

	config    *rest.Config
	namespace string // that was chosen, empty for all
}

// open returns a session.
func (c *cluster) open() (*session, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules, &c.overrides)
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("there is no kubeconfig: name one with --kubeconfig, or by the variable KUBECONFIG")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w; name one with --kubeconfig, or a context of it with --context", err)
	}
	if c.timeout < 0 {
		return nil, fmt.Errorf("--request-timeout is %s: use 0 or more", c.timeout)
	}
	config.Timeout = c.timeout
	s := &session{config: config}
	if !c.all {
		if s.namespace, _, err = loader.Namespace(); err != nil {
			return nil, fmt.Errorf("reading the kubeconfig: %w; name a namespace with -n", err)
		}
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, eventsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	s.Client, err = client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return s, nil
}

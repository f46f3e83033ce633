package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/weir-dev/weir/hack/kind/docker"
	"github.com/weir-dev/weir/hack/kind/machine"
	"github.com/weir-dev/weir/hack/kind/progress"
)

// Delete removes a cluster by its name, as Cluster.Delete does, whichever
// process created it. Where no engine runs there is none, and no error.
func Delete(ctx context.Context, name, kubeconfig string, to io.Writer) error {
	if !machine.EngineAnswers(ctx) {
		return nil
	}
	log := progress.Log{W: to}
	lock, err := oneAtATime(log)
	if err != nil {
		return err
	}
	defer lock.Close()
	return remove(ctx, newProvider(log), name, kubeconfig)
}

func remove(ctx context.Context, provider *cluster.Provider, name, kubeconfig string) error {
	if err := unguard(ctx, provider, name); err != nil {
		return err
	}
	if err := provider.Delete(name, kubeconfig); err != nil {
		return fmt.Errorf("delete cluster %s: %w", name, err)
	}
	return errors.Join(removeEmpty(kubeconfig), removeNetwork(ctx, provider))
}

// removeEmpty removes a kubeconfig file that describes no cluster any more.
func removeEmpty(path string) error {
	config, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if len(config.Clusters) > 0 || len(config.AuthInfos) > 0 || len(config.Contexts) > 0 {
		return nil
	}
	return os.Remove(path)
}

// engineNetwork is what kind calls the network of all its clusters.
const engineNetwork = "kind"

// removeNetwork removes kind's network when no cluster is left.
func removeNetwork(ctx context.Context, provider *cluster.Provider) error {
	left, err := provider.List()
	if err != nil || len(left) > 0 {
		return err
	}
	id, err := docker.Output(ctx, "network", "ls", "--quiet", "--filter", "name=^"+engineNetwork+"$")
	if err != nil || id == "" {
		return err
	}
	_, err = docker.Output(ctx, "network", "rm", id)
	return err
}

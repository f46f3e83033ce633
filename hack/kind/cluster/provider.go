package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/weir-dev/weir/hack/kind/docker"
	"github.com/weir-dev/weir/hack/kind/machine"
	"github.com/weir-dev/weir/hack/kind/progress"
)

func newProvider(to progress.Log) *cluster.Provider {
	return cluster.NewProvider(cluster.ProviderWithDocker(), cluster.ProviderWithLogger(kindLog{to}))
}

// oneAtATime keeps two processes from choosing the same addresses, and from
// removing a network that the other is about to use.
func oneAtATime(to progress.Log) (*os.File, error) {
	return machine.Lock("clusters", func() { to.Say("waiting for another process that creates or deletes a cluster") })
}

// describeHost finds out what the engine's host needs in a cluster's
// configuration.
func describeHost(ctx context.Context) (host, error) {
	version, err := docker.Output(ctx, "info", "--format", "{{.CgroupVersion}}")
	if err != nil {
		return host{}, err
	}
	h := host{cgroupV1: version == "1", adjusts: true}
	if held, err := machine.Held(); err == nil { // elsewhere the engine is a virtual machine with all of them
		h.adjusts = held.Has("CAP_SYS_RESOURCE")
	}
	return h, nil
}

// kindLog passes on the warnings of kind. Its own progress is too detailed beside
// ours.
type kindLog struct{ to progress.Log }

func (l kindLog) Warn(message string)               { l.Warnf("%s", message) }
func (l kindLog) Error(message string)              { l.Warnf("%s", message) }
func (l kindLog) Errorf(format string, args ...any) { l.Warnf(format, args...) }
func (l kindLog) V(log.Level) log.InfoLogger        { return log.NoopInfoLogger{} }

func (l kindLog) Warnf(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if !strings.Contains(message, "cgroup v1 is deprecated") { // the configuration allows for it
		l.to.Say("%s", message)
	}
}

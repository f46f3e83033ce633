package cluster

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

// Config says what cluster is wanted.
type Config struct {
	// Name distinguishes clusters of one engine, and names the nodes' containers:
	// lower case letters, digits and dashes, at most 50 characters.
	Name string
	// Workers is the number of nodes beside the control plane's, 0 to 9. Without
	// workers the control plane's node takes pods.
	Workers int
	// Pods is the IPv4 range of all pods' addresses, /8 to /20: each node takes
	// a /24 of it. The zero value has a free /16 chosen.
	Pods netip.Prefix
	// Kubeconfig is the file that the cluster's credentials are written to.
	// Other clusters that it describes are kept.
	Kubeconfig string
	// Progress is called with what takes long; nil is silent.
	Progress io.Writer
}

var nameFormat = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?$`)

func (c Config) validate() error {
	var errs []error
	if !nameFormat.MatchString(c.Name) {
		errs = append(errs, fmt.Errorf("cluster.Config.Name %q: use 1 to 50 lower case letters, digits and inner dashes", c.Name))
	}
	if c.Workers < 0 || c.Workers > 9 {
		errs = append(errs, fmt.Errorf("cluster.Config.Workers %d: use 0 to 9", c.Workers))
	}
	if c.Pods.IsValid() && (!c.Pods.Addr().Is4() || c.Pods != c.Pods.Masked() || c.Pods.Bits() < 8 || c.Pods.Bits() > 20) {
		errs = append(errs, fmt.Errorf("cluster.Config.Pods %s: use an IPv4 prefix of 8 to 20 bits without host bits, for example 10.244.0.0/16", c.Pods))
	}
	if c.Kubeconfig == "" {
		errs = append(errs, errors.New("cluster.Config.Kubeconfig is empty: name the file that the credentials shall be written to"))
	}
	return errors.Join(errs...)
}

// host is what the machine decides about a cluster.
type host struct {
	cgroupV1 bool // the engine's containers have control groups of version 1
	adjusts  bool // containers may lower their score for the kernel's OOM killer
}

// Nothing but the settings that the host needs differs from kind's defaults.
const (
	failCgroupV1 = "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\nfailCgroupV1: false\n"

	// For the two formats of containerd's configuration; kind takes the one
	// whose version is the node's.
	restrictOOMv2 = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  restrict_oom_score_adj = true\n"
	restrictOOMv3 = "version = 3\n[plugins.\"io.containerd.cri.v1.runtime\"]\n  restrict_oom_score_adj = true\n"
)

// render makes kind's configuration of a valid one whose Pods are chosen.
func (c Config) render(image string, h host) *v1alpha4.Cluster {
	rendered := &v1alpha4.Cluster{
		Name: c.Name,
		Networking: v1alpha4.Networking{
			PodSubnet:         c.Pods.String(),
			ServiceSubnet:     services.String(),
			DisableDefaultCNI: true,
		},
		Nodes: []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole, Image: image}},
	}
	for range c.Workers {
		rendered.Nodes = append(rendered.Nodes, v1alpha4.Node{Role: v1alpha4.WorkerRole, Image: image})
	}
	if h.cgroupV1 {
		rendered.KubeadmConfigPatches = []string{failCgroupV1}
	}
	if !h.adjusts {
		rendered.ContainerdConfigPatches = []string{restrictOOMv2, restrictOOMv3}
	}
	v1alpha4.SetDefaultsCluster(rendered)
	return rendered
}

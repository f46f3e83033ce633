package cluster

import (
	"net/netip"
	"strings"
	"testing"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

func valid() Config {
	return Config{Name: "weir", Workers: 2, Pods: netip.MustParsePrefix("10.244.0.0/16"), Kubeconfig: "k"}
}

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		field  string // that the error names; empty: valid
	}{
		"valid":                  {func(*Config) {}, ""},
		"pods to be chosen":      {func(c *Config) { c.Pods = netip.Prefix{} }, ""},
		"no workers":             {func(c *Config) { c.Workers = 0 }, ""},
		"no name":                {func(c *Config) { c.Name = "" }, "Name"},
		"a name with capitals":   {func(c *Config) { c.Name = "Weir" }, "Name"},
		"a name that is long":    {func(c *Config) { c.Name = strings.Repeat("a", 51) }, "Name"},
		"workers below zero":     {func(c *Config) { c.Workers = -1 }, "Workers"},
		"too many workers":       {func(c *Config) { c.Workers = 10 }, "Workers"},
		"pods of version 6":      {func(c *Config) { c.Pods = netip.MustParsePrefix("fd00::/16") }, "Pods"},
		"pods with host bits":    {func(c *Config) { c.Pods = netip.MustParsePrefix("10.244.1.0/16") }, "Pods"},
		"a range that is narrow": {func(c *Config) { c.Pods = netip.MustParsePrefix("10.244.0.0/21") }, "Pods"},
		"no kubeconfig":          {func(c *Config) { c.Kubeconfig = "" }, "Kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			c := valid()
			test.change(&c)
			err := c.validate()
			if test.field == "" && err != nil || test.field != "" && (err == nil || !strings.HasPrefix(err.Error(), "cluster.Config."+test.field)) {
				t.Errorf("got %v, want an error of %q", err, test.field)
			}
		})
	}
}

func TestRender(t *testing.T) {
	for name, test := range map[string]struct {
		host                host
		kubeadm, containerd int // patches
	}{
		"an ordinary host":            {host{adjusts: true}, 0, 0},
		"older control groups":        {host{adjusts: true, cgroupV1: true}, 1, 0},
		"a host without a capability": {host{}, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			got := valid().render("image:tag", test.host)
			if len(got.KubeadmConfigPatches) != test.kubeadm || len(got.ContainerdConfigPatches) != test.containerd {
				t.Errorf("patches %q and %q, want %d and %d", got.KubeadmConfigPatches, got.ContainerdConfigPatches, test.kubeadm, test.containerd)
			}
			if !got.Networking.DisableDefaultCNI || got.Networking.PodSubnet != "10.244.0.0/16" {
				t.Errorf("networking %+v", got.Networking)
			}
			var roles []v1alpha4.NodeRole
			for _, node := range got.Nodes {
				roles = append(roles, node.Role)
				if node.Image != "image:tag" {
					t.Errorf("node of image %q", node.Image)
				}
			}
			if len(roles) != 3 || roles[0] != v1alpha4.ControlPlaneRole || roles[1] != v1alpha4.WorkerRole || roles[2] != v1alpha4.WorkerRole {
				t.Errorf("roles %v", roles)
			}
		})
	}
}

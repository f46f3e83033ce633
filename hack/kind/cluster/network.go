package cluster

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/netip"
	"slices"
	"text/template"
)

// nodeNetwork is what other nodes need to know of one.
type nodeNetwork struct {
	Name    string       // of the node, and of its container
	Address netip.Addr   // in the engine's network
	Pods    netip.Prefix // the addresses of its pods
}

//go:embed network.sh.tmpl
var networkText string

var networkTemplate = template.Must(template.New("network.sh").Parse(networkText))

// networkScript renders the shell script that gives a node its pods' network:
// the plugin's configuration, which destinations see pods' own addresses, and that
// nothing addressed to a pod or a Service leaves by the default route.
func networkScript(n nodeNetwork, pods, nodes netip.Prefix) string {
	var script bytes.Buffer
	err := networkTemplate.Execute(&script, struct {
		Node                  nodeNetwork
		Pods, Nodes, Services netip.Prefix
	}{n, pods, nodes, services})
	if err != nil {
		panic(err) // the template and its data are both in this package
	}
	return script.String()
}

// routeScript renders the shell script that makes the pods of other nodes
// reachable from a node, with their own addresses. It may run again.
func routeScript(pods netip.Prefix, others []nodeNetwork) string {
	var script bytes.Buffer
	fmt.Fprintf(&script, "nft add element ip weir direct { %s }\n", pods)
	fmt.Fprintf(&script, "ip route replace unreachable %s\n", pods)
	for _, other := range others {
		fmt.Fprintf(&script, "ip route replace %s via %s\n", other.Pods, other.Address)
	}
	return script.String()
}

// without returns all nodes but the named one.
func without(nodes []nodeNetwork, name string) []nodeNetwork {
	return slices.DeleteFunc(slices.Clone(nodes), func(n nodeNetwork) bool { return n.Name == name })
}

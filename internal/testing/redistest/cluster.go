package redistest

import (
	"fmt"
	"strings"
	"testing"
)

// slots is how many parts a cluster splits the keys into.
const slots = 16384

// A Cluster is a Redis Cluster whose primaries share the keys evenly. A primary that
// does not answer for half a second fails over.
type Cluster struct{ Nodes []*Server }

// StartCluster runs a cluster of primaries until the test ends.
func StartCluster(t testing.TB, primaries int) *Cluster {
	t.Helper()
	c := &Cluster{}
	for i := range primaries {
		node := startNode(t)
		node.Do("CLUSTER", "ADDSLOTSRANGE", i*slots/primaries, (i+1)*slots/primaries-1)
		node.Do("CLUSTER", "SET-CONFIG-EPOCH", i+1)
		c.join(node)
	}
	c.await()
	return c
}

// Addrs returns the addresses of the nodes.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, n := range c.Nodes {
		addrs = append(addrs, n.Addr)
	}
	return addrs
}

// StartReplica adds a replica of a node, and returns when it follows.
func (c *Cluster) StartReplica(of *Server) *Server {
	of.t.Helper()
	r := startNode(of.t)
	c.join(r)
	c.await()
	r.Do("CLUSTER", "REPLICATE", of.Do("CLUSTER", "MYID"))
	r.awaitInfo("replication", "master_link_status:up")
	return r
}

func startNode(t testing.TB) *Server {
	t.Helper()
	s := newServer(t)
	_, s.bus = (&Server{Addr: FreeAddr(t)}).hostPort()
	return s.start("--cluster-enabled", "yes", "--cluster-node-timeout", "500", "--cluster-port", s.bus)
}

func (c *Cluster) join(node *Server) {
	if len(c.Nodes) > 0 {
		host, port := c.Nodes[0].hostPort()
		node.Do("CLUSTER", "MEET", host, port, c.Nodes[0].bus)
	}
	c.Nodes = append(c.Nodes, node)
}

// await blocks until every node knows every other and serves.
func (c *Cluster) await() {
	for _, n := range c.Nodes {
		n.Await("its cluster", func() bool {
			info := n.Do("CLUSTER", "INFO").(string)
			return strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, fmt.Sprintf("cluster_slots_ok:%d", slots)) &&
				strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", len(c.Nodes)))
		})
	}
}

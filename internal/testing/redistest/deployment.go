package redistest

import (
	"slices"
	"testing"
	"time"
)

// A Deployment is where a store is found, as redis.Options have it, and the ways in which it loses what it
// knows.
type Deployment struct {
	Addresses []string
	Sentinel  string
	Cluster   bool
	Losses    []func()
}

// Deployments start, by name, a server, a primary that Sentinels watch, and a cluster. A test keeps one key in
// them. The lag is how long the store is in use after a dump, or while a replica does not follow.
func Deployments(lag time.Duration) map[string]func(t testing.TB) Deployment {
	return map[string]func(t testing.TB) Deployment{
		"one server": func(t testing.TB) Deployment {
			server := Start(t)
			return Deployment{Addresses: []string{server.Addr}, Losses: []func(){
				server.Restart, server.Flush, server.FlushScripts,
				func() { server.Flush(); server.FlushScripts() },
				func() { server.Do("SAVE"); <-time.After(lag); server.Restart() },
				func() { server.Pause(); <-time.After(time.Second); server.Resume() },
			}}
		},
		"a failover by Sentinels": func(t testing.TB) Deployment {
			primary := Start(t)
			replica := primary.StartReplica()
			return Deployment{
				Addresses: StartSentinels(t, 3, "primary", primary), Sentinel: "primary",
				Losses: []func(){func() { primary.FailOver(replica, lag) }},
			}
		},
		"a failover of a cluster's node": func(t testing.TB) Deployment {
			cluster := StartCluster(t, 3)
			replicas := map[*Server]*Server{}
			for _, node := range slices.Clone(cluster.Nodes) {
				replicas[node] = cluster.StartReplica(node)
			}
			return Deployment{Addresses: cluster.Addrs(), Cluster: true, Losses: []func(){func() {
				for node, replica := range replicas {
					if node.Do("DBSIZE") != int64(0) { // it has the key
						node.FailOver(replica, lag)
					}
				}
			}}}
		},
	}
}

// FailOver kills a primary whose replica missed what was written in the lag.
func (s *Server) FailOver(replica *Server, lag time.Duration) {
	replica.Pause()
	s.Do("CLIENT", "KILL", "TYPE", "replica")
	<-time.After(lag)
	s.Kill()
	replica.Resume()
}

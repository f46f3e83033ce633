package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// StartSentinels runs Sentinels until the test ends that watch a primary under a
// name, and agree when more than half of them do. It returns their addresses when
// they know each other and the primary's replicas. A primary that does not answer
// for 300 ms fails over.
func StartSentinels(t testing.TB, count int, name string, primary *Server) []string {
	t.Helper()
	var addrs []string
	var sentinels []*Server
	host, port := primary.hostPort()
	for range count {
		s := newServer(t)
		_, own := s.hostPort()
		file := filepath.Join(s.Dir, "sentinel.conf") // Sentinels keep what they learn in it
		lines := []string{
			"port " + own, "bind " + host, "dir " + s.Dir, "logfile redis.log",
			fmt.Sprintf("sentinel monitor %s %s %s %d", name, host, port, count/2+1),
			fmt.Sprintf("sentinel down-after-milliseconds %s 300", name),
			fmt.Sprintf("sentinel failover-timeout %s 2000", name),
		}
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		sentinels = append(sentinels, s.start([]string{file, "--sentinel"}))
		addrs = append(addrs, s.Addr)
	}
	replicas := strings.Count(primary.Do("INFO", "replication").(string), ",state=") // Sentinels count those, too, that do not have all data yet
	for _, s := range sentinels {
		s.awaitInfo("sentinel", fmt.Sprintf("slaves=%d,sentinels=%d", replicas, count))
	}
	return addrs
}

package redistest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

// StartSentinels runs Sentinels until the test ends that watch a primary under a
// name, and agree when more than half of them do. It returns their addresses when
// they know each other and the primary's replicas. A primary that does not answer
// for 300 ms fails over.
func StartSentinels(t testing.TB, count int, name string, primary *Server) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var addrs []string
	var sentinels []*Server
	for range count {
		s := newServer(t)
		var err error
		if s.process, err = servers.Sentinel(ctx, s.options(), name, primary.Addr, count/2+1, 300*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Kill)
		sentinels, addrs = append(sentinels, s), append(addrs, s.Addr)
	}
	replicas := strings.Count(primary.Do("INFO", "replication").(string), ",state=") // Sentinels count those, too, that do not have all data yet
	for _, s := range sentinels {
		s.awaitInfo("sentinel", fmt.Sprintf("slaves=%d,sentinels=%d", replicas, count))
	}
	return addrs
}

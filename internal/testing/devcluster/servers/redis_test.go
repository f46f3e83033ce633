package servers_test

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

// TestARedisHasLoadedWhatItKept when its start returns.
func TestARedisHasLoadedWhatItKept(t *testing.T) {
	t.Parallel()
	s, err := servers.RedisWith(t.Context(), servers.Options{Logs: t.TempDir(), Args: []string{"--appendonly", "yes", "--enable-debug-command", "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	if got := say(t, s, "DEBUG POPULATE 200000"); got != "+OK" {
		t.Fatal(got)
	}
	s.Stop(10 * time.Second)
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := say(t, s, "DBSIZE"); strings.HasPrefix(got, "-") {
		t.Errorf("after a restart it answers %s", got)
	}
}

// say sends a Redis a command in a line, and returns the line of its answer.
func say(t *testing.T, s *servers.Server, command string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

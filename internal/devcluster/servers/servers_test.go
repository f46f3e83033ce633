package servers_test

import (
	"context"
	"net"
	"testing"

	"github.com/weir-dev/weir/internal/devcluster/servers"
)

func TestServersServeUntilKilled(t *testing.T) {
	for name, start := range map[string]func(context.Context, string) (*servers.Server, error){
		"redis": servers.Redis, "postgres": servers.Postgres,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := start(t.Context(), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			s.Kill()
			if c, err := net.Dial("tcp", s.Address); err == nil {
				_ = c.Close()
				t.Error("it still listens")
			}
		})
	}
}

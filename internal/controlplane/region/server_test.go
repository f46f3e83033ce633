package region

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/policy"
)

// TestBudgetsAreKeptInStores asks real servers.
func TestBudgetsAreKeptInStores(t *testing.T) {
	postgres := postgrestest.Start(t)
	postgres.Do("CREATE ROLE app LOGIN SUPERUSER")
	for name, tc := range map[string]struct {
		of     policy.Store
		secret map[string][]byte
	}{
		"redis":    {of: policy.Store{Type: policy.RedisStore, Address: redistest.Start(t).Addr}},
		"postgres": {policy.Store{Type: policy.PostgresStore, Address: postgres.Addr, Database: "postgres"}, map[string][]byte{"username": []byte("app")}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := openServer(backend.Opener{}, tc.of, tc.secret)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			c := ledger.Command{Op: ledger.Lease, Member: "a", Holder: "test", Seq: 1, Min: 1, Want: 5}
			if _, err := s.Ledger.Apply(t.Context(), "acme/checkout", own("acme/checkout", 100).Params, c); err != nil {
				t.Error(err)
			}
			if (s.Escrow != nil) != (name == "redis") {
				t.Fatalf("an escrow is there: %t", s.Escrow != nil)
			}
			if s.Escrow == nil {
				return
			}
			if _, err := s.Escrow.Apply(t.Context(), "acme/checkout", escrow.Command{Op: escrow.Peek, Holder: "test"}); err != nil {
				t.Error(err)
			}
		})
	}
	_, err := openServer(backend.Opener{}, policy.Store{Type: "Disk"}, nil)
	if err == nil || !strings.Contains(err.Error(), `store type "Disk"`) {
		t.Errorf("error %v, want one that names the type", err)
	}
}

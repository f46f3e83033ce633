//go:build fleet

package fleet

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

// startRedis starts a server for one spec and returns the store it is, and its
// process.
func startRedis(ctx context.Context) (v1alpha1.Store, *servers.Server) {
	GinkgoHelper()
	server, err := servers.Redis(ctx, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Kill)
	return v1alpha1.Store{
		Type:  v1alpha1.RedisStoreType,
		Redis: &v1alpha1.RedisStore{Address: v1alpha1.HostPort(server.Address), TLS: v1alpha1.TLSDisabled},
	}, server
}

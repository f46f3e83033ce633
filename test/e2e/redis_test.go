//go:build e2e

package e2e

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-dev/weir/internal/devcluster/process"
)

// startRedis starts a server for one spec and returns its address.
func startRedis() string {
	GinkgoHelper()
	program, err := exec.LookPath("redis-server")
	Expect(err).NotTo(HaveOccurred(), "redis-server is missing: `make deps` installs it")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	address := l.Addr().(*net.TCPAddr)
	Expect(l.Close()).To(Succeed())
	dir := GinkgoT().TempDir()
	server, err := process.Start(process.Spec{
		Path: program, Env: os.Environ(), Log: dir + "/redis.log",
		Args: []string{"--port", strconv.Itoa(address.Port), "--bind", "127.0.0.1", "--save", "", "--dir", dir, "--maxmemory-policy", "noeviction"},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Kill)
	Eventually(func(g Gomega) {
		conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", address.String())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(conn.Close()).To(Succeed())
	}, 5*time.Second, 50*time.Millisecond).Should(Succeed())
	return address.String()
}

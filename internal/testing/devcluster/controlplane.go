package devcluster

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/internal/testing/devcluster/process"
	"github.com/weir-dev/weir/internal/testing/freeport"
)

// startTimeout bounds the start of each server.
const startTimeout = 90 * time.Second

// controlPlane is etcd and the Kubernetes servers.
type controlPlane struct {
	assets, state, logs     string
	serverArgs, managerArgs []string // that follow ours
	server                  string   // URL
	token                   string   // of a user who may do everything
	processes               []*process.Process
	api                     *process.Process // the API server, among them
}

// start starts the servers and writes a kubeconfig with all rights. The caller has to call stop, also
// after an error.
func (c *controlPlane) start(ctx context.Context, kubeconfig string) error {
	for _, step := range []func(context.Context) error{
		c.startEtcd,
		c.startServer,
		func(context.Context) error { return c.writeKubeconfig(kubeconfig, c.token) },
		func(context.Context) error { return c.startControllers(kubeconfig) },
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *controlPlane) stop() {
	for _, p := range slices.Backward(c.processes) {
		p.Kill() // nothing of their state is kept
	}
}

func (c *controlPlane) run(program string, args ...string) (*process.Process, error) {
	path := filepath.Join(c.assets, program)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%w; `make assets` provides it", err)
	}
	p, err := process.Start(process.Spec{
		Path: path, Args: args, Env: append(os.Environ(), "HOME="+c.state), Log: filepath.Join(c.logs, program+".log"),
	})
	if err == nil {
		c.processes = append(c.processes, p)
	}
	return p, err
}

func (c *controlPlane) startEtcd(ctx context.Context) error {
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	client, peer := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	p, err := c.run("etcd",
		"--data-dir="+filepath.Join(c.state, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		"--log-level=warn")
	if err != nil {
		return err
	}
	c.server = client // until the API server has its own
	return await(ctx, p, "etcd", c.logs, func(ctx context.Context) error {
		return get(ctx, http.DefaultClient, client+"/health")
	})
}

func (c *controlPlane) startServer(ctx context.Context) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	key, err := writeSigningKey(c.state)
	if err != nil {
		return err
	}
	c.token = rand.Text()
	tokens := filepath.Join(c.state, "tokens.csv")
	if err := os.WriteFile(tokens, fmt.Appendf(nil, "%s,admin,admin,system:masters\n", c.token), 0o600); err != nil {
		return err
	}
	p, err := c.run("kube-apiserver", append([]string{
		"--etcd-servers=" + c.server,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + ports[0], "--cert-dir=" + c.certificates(),
		"--token-auth-file=" + tokens, "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file=" + key, "--service-account-key-file=" + key,
		"--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none", "--profiling=false",
	}, c.serverArgs...)...)
	if err != nil {
		return err
	}
	c.server, c.api = "https://127.0.0.1:"+ports[0], p
	return await(ctx, p, "kube-apiserver", c.logs, func(ctx context.Context) error {
		client, err := rest.HTTPClientFor(c.config())
		if err != nil {
			return err // its certificate is not written yet
		}
		defer client.CloseIdleConnections()
		return get(ctx, client, c.server+"/readyz")
	})
}

// startControllers starts the controllers that make Deployments work, and the
// scheduler. Those that watch over nodes would only find that the stand-in for
// the kubelet sends no heartbeats.
func (c *controlPlane) startControllers(kubeconfig string) error {
	_, err := c.run("kube-controller-manager", append([]string{
		"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--root-ca-file=" + c.caFile(),
		"--controllers=daemonset-controller,deployment-controller,disruption-controller,endpointslice-controller," +
			"garbage-collector-controller,namespace-controller,replicaset-controller,root-ca-certificate-publisher-controller," +
			"serviceaccount-controller,statefulset-controller",
	}, c.managerArgs...)...)
	if err != nil {
		return err
	}
	_, err = c.run("kube-scheduler", "--kubeconfig="+kubeconfig, "--leader-elect=false", "--secure-port=0")
	return err
}

func (c *controlPlane) certificates() string { return filepath.Join(c.state, "certificates") }

// caFile returns the certificate that the API server signed for itself.
func (c *controlPlane) caFile() string { return filepath.Join(c.certificates(), "apiserver.crt") }

// config returns a client configuration with all rights.
func (c *controlPlane) config() *rest.Config {
	return &rest.Config{
		Host: c.server, BearerToken: c.token, TLSClientConfig: rest.TLSClientConfig{CAFile: c.caFile()},
		QPS: -1, // the server is ours alone
	}
}

// writeSigningKey writes the key of service-account tokens and returns its file.
func writeSigningKey(dir string) (string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "service-accounts.key")
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return file, os.WriteFile(file, pem.EncodeToMemory(block), 0o600)
}

// freePorts returns ports of 127.0.0.1 that nothing listens on.
func freePorts(n int) ([]string, error) {
	var ports []string
	for range n {
		port, err := freeport.Port()
		if err != nil {
			return nil, err
		}
		ports = append(ports, strconv.Itoa(port))
	}
	return ports, nil
}

// await blocks until ready returns nil. It fails when p ends before that.
func await(ctx context.Context, p *process.Process, name, logs string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("%s ended with code %d, see %s", name, p.ExitCode(), filepath.Join(logs, name+".log"))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w, see %s", name, err, filepath.Join(logs, name+".log"))
		case <-tick.C:
		}
	}
}

// get returns nil when url answers with 200.
func get(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return nil
}

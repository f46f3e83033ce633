package backend

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"maps"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hidden = "s3cr3t"

// use opens a store and takes one unit.
func use(t *testing.T, of policy.Store, secret map[string][]byte) error {
	t.Helper()
	var asked atomic.Bool
	allow := func(context.Context, string, string, syscall.RawConn) error { asked.Store(true); return nil }
	b, err := Opener{Control: allow}.Open(of, secret)
	if err != nil {
		return err
	}
	defer func() {
		if !asked.Load() {
			t.Error("an address was dialled that nobody was asked about")
		}
	}()
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := b.Refresh(t.Context()); err != nil {
		return err
	}
	key := store.Key{Scope: store.Scope{Cluster: "test", Namespace: "shop", Policy: "p", Limit: "l"}}
	params := limiter.Params{Rates: []limiter.Rate{{Limit: 10, Window: limiter.Second}}}
	_, err = b.Apply(t.Context(), key, params, limiter.Command{Op: limiter.Take, Min: 1, Want: 1})
	return err
}

func secret(pairs ...string) map[string][]byte {
	values := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = []byte(pairs[i+1])
	}
	return values
}

func TestRedis(t *testing.T) {
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "app", "on", ">"+hidden, "~*", "&*", "+@all")
	redis := policy.Store{Type: policy.RedisStore, Address: server.Addr}
	if err := use(t, redis, nil); err != nil {
		t.Errorf("one server: %v", err)
	}
	if err := use(t, redis, secret("username", "app", "password", hidden, "sentinel-username", "unused")); err != nil {
		t.Errorf("with a user: %v", err)
	}
	if err := use(t, redis, secret("username", "app", "password", "guess")); err == nil || strings.Contains(err.Error(), "guess") {
		t.Errorf("with a wrong password: %v", err)
	}

	var made atomic.Int64
	b, err := Opener{Conn: func(c net.Conn) net.Conn { made.Add(1); return c }}.Open(redis, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Refresh(t.Context()), b.Close()); err != nil || made.Load() == 0 {
		t.Errorf("%d connections were made by Conn, %v", made.Load(), err)
	}

	sentinels := redistest.StartSentinels(t, 1, "main", server)
	redis.Address, redis.Sentinel = strings.Join(sentinels, ","), "main"
	if err := use(t, redis, secret("username", "app", "password", hidden)); err != nil {
		t.Errorf("behind Sentinels: %v", err)
	}
}

func TestRedisOverHTTP(t *testing.T) {
	bridge := redistest.Start(t).StartBridge()
	of := policy.Store{Type: policy.RedisStore, REST: true, Address: bridge.URL, Secret: "shop/db"}
	if err := use(t, of, secret("rest-token", bridge.Token+"\n", "password", "unused")); err != nil {
		t.Error(err)
	}
	if err := use(t, of, secret("rest-token", hidden)); err == nil || strings.Contains(err.Error(), hidden) {
		t.Errorf("with a wrong token: %v", err)
	}

	certificate, key := selfSigned(t)
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	encrypted := httptest.NewUnstartedServer(bridge)
	encrypted.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	encrypted.StartTLS()
	defer encrypted.Close()
	of.Address, of.TLS = encrypted.URL, true
	if err := use(t, of, map[string][]byte{"rest-token": []byte(bridge.Token), "ca.crt": certificate}); err != nil {
		t.Errorf("encrypted: %v", err)
	}
	if err := use(t, of, secret("rest-token", bridge.Token)); err == nil || !strings.Contains(err.Error(), "ca.crt of the Secret") {
		t.Errorf("without its authority: %v", err)
	}
}

// TestPlainIsAskedWithoutEncryption alone, in the place of Control.
func TestPlainIsAskedWithoutEncryption(t *testing.T) {
	refuse := func(why string) store.Control {
		return func(context.Context, string, string, syscall.RawConn) error { return &store.Failure{Why: why} }
	}
	by := Opener{Control: refuse("by Control"), Plain: refuse("by Plain")}
	for url, want := range map[string]string{"https://127.0.0.1:1": "by Control", "http://127.0.0.1:1": "by Plain"} {
		of := policy.Store{Type: policy.RedisStore, REST: true, Address: url, TLS: strings.HasPrefix(url, "https"), Secret: "shop/db"}
		b, err := by.Open(of, secret("rest-token", "t"))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is refused by %v, want %s", url, err, want)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestARedisCluster(t *testing.T) {
	nodes := redistest.StartCluster(t, 3).Addrs()
	if err := use(t, policy.Store{Type: policy.RedisStore, Address: strings.Join(nodes, ","), Cluster: true}, nil); err != nil {
		t.Error(err)
	}
}

func TestAnEncryptedRedis(t *testing.T) {
	certificate, key := selfSigned(t)
	dir := t.TempDir()
	for name, data := range map[string][]byte{"crt": certificate, "key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := redistest.FreeAddr(t)
	_, port, _ := net.SplitHostPort(address)
	redistest.Start(t, "--tls-port", port, "--tls-ca-cert-file", filepath.Join(dir, "crt"),
		"--tls-cert-file", filepath.Join(dir, "crt"), "--tls-key-file", filepath.Join(dir, "key"), "--tls-auth-clients", "yes")
	of := policy.Store{Type: policy.RedisStore, Address: address, TLS: true}
	values := map[string][]byte{"ca.crt": certificate, "tls.crt": certificate, "tls.key": key}
	if err := use(t, of, values); err != nil {
		t.Errorf("with authority and certificate: %v", err)
	}
	for _, lacks := range [][]string{{"ca.crt"}, {"tls.crt", "tls.key"}} {
		less := maps.Clone(values)
		for _, name := range lacks {
			delete(less, name)
		}
		if err := use(t, of, less); err == nil {
			t.Errorf("without %v it was reached", lacks)
		}
	}
}

func TestPostgres(t *testing.T) {
	server := postgrestest.Start(t)
	server.Do("CREATE ROLE app LOGIN SUPERUSER")
	of := policy.Store{Type: policy.PostgresStore, Address: server.Addr, Database: "postgres"}
	if err := use(t, of, secret("username", "app")); err != nil {
		t.Error(err)
	}
}

func TestWhatIsWrongIsNamedAndNotShown(t *testing.T) {
	certificate, key := selfSigned(t)
	_, other := selfSigned(t)
	redis := policy.Store{Type: policy.RedisStore, Address: "r:1", TLS: true, Secret: "shop/db"}
	sentinel := redis
	sentinel.Sentinel = "main"
	postgres := policy.Store{Type: policy.PostgresStore, Address: "p", Database: "d", TLS: true, Secret: "shop/db"}
	bare := postgres
	bare.Secret = ""
	for name, tc := range map[string]struct {
		of     policy.Store
		secret map[string][]byte
		want   string
	}{
		"an unknown type":                   {policy.Store{Type: "Disk"}, nil, `store type "Disk"`},
		"the controller, which is not here": {policy.Store{Type: policy.ControllerStore}, nil, `store type "Controller"`},
		"no user of Postgres":               {postgres, nil, "username of secret shop/db is missing"},
		"no secret of Postgres":             {bare, nil, "name that in spec.store"},
		"a user without a password":         {redis, secret("username", hidden), "password of secret shop/db is missing"},
		"a user of Sentinels without one":   {sentinel, secret("sentinel-username", hidden), "sentinel-password of secret shop/db is missing"},
		"no token over HTTP":                {policy.Store{Type: policy.RedisStore, REST: true, Address: "https://a", TLS: true, Secret: "shop/db"}, secret("token", hidden), "rest-token of secret shop/db is missing"},
		"a token of two lines":              {policy.Store{Type: policy.RedisStore, REST: true, Address: "https://a", TLS: true, Secret: "shop/db"}, secret("rest-token", hidden+"\na"), "has characters that no token has"},
		"text in place of an authority":     {redis, secret("ca.crt", hidden), "ca.crt of secret shop/db holds no certificate"},
		"a certificate without its key":     {postgres, map[string][]byte{"tls.crt": certificate}, "tls.key of secret shop/db is missing"},
		"a key without its certificate":     {redis, map[string][]byte{"tls.key": key}, "tls.crt of secret shop/db is missing"},
		"the key of another certificate":    {redis, map[string][]byte{"tls.crt": certificate, "tls.key": other}, "tls.crt of secret shop/db and its tls.key are not a pair"},
		"text in place of a certificate":    {redis, secret("tls.crt", hidden, "tls.key", hidden), "tls.crt of secret shop/db and its tls.key are not a pair"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := Opener{}.Open(tc.of, tc.secret)
			if b != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v and error %v, want one that says %q", b, err, tc.want)
			}
			for _, value := range tc.secret {
				if strings.Contains(err.Error(), string(bytes.TrimSpace(value))) {
					t.Errorf("the error shows a value: %v", err)
				}
			}
		})
	}
}

// selfSigned returns a certificate of 127.0.0.1 that is its own authority, and its
// key.
func selfSigned(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

package storeprobe

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// secretText is what servers of these tests send, in whatever they send.
const secretText = "TOPSECRET"

// postgresError is an ErrorResponse of Postgres.
func postgresError(code string) string {
	fields := "SFATAL\x00VFATAL\x00C" + code + "\x00M" + secretText + "\x00\x00"
	return "E\x00\x00\x00" + string(rune(4+len(fields))) + fields
}

// TestNothingThatAServerSendsIsShown asks servers of all kinds for a store: an error may say
// what is wrong in words of ours alone.
func TestNothingThatAServerSendsIsShown(t *testing.T) {
	authority, certificate := certificateOf(t, strings.ToLower(secretText)+".internal")
	encrypted := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	for name, tc := range map[string]struct {
		answer string
		tls    *tls.Config
		secret map[string][]byte
		redis  string
		other  string // for Postgres
	}{
		"an SSH server":     {answer: "SSH-2.0-OpenSSH_9.0 " + secretText + "\r\n", redis: "does not answer as Redis does", other: "does not answer as Postgres does"},
		"a web server":      {answer: "HTTP/1.1 400 " + secretText + "\r\n\r\n" + secretText, redis: "does not answer as Redis does", other: "does not answer as Postgres does"},
		"an error of Redis": {answer: strings.Repeat("-ERR "+secretText+"\r\n", 100), redis: "an error that Weir does not expect"},
		"one that loads":    {answer: strings.Repeat("-LOADING "+secretText+"\r\n", 100), redis: "it is loading its data"},
		"one that refuses":  {answer: strings.Repeat("-WRONGPASS "+secretText+"\r\n", 100), redis: "refuses the user name or password"},
		"a Postgres that refuses": {
			answer: postgresError("28P01"), other: "refuses the user name, password or certificate",
		},
		"a Postgres without the database": {answer: postgresError("3D000"), other: "it has no such database"},
		"a Postgres with another error":   {answer: postgresError("XX000"), other: "an error that Weir does not expect"},
		"a certificate for another name": {
			tls: encrypted, secret: map[string][]byte{"ca.crt": authority}, redis: "its certificate is for another name",
		},
		"no TLS": {answer: secretText + "\r\n", tls: &tls.Config{}, redis: "it does not speak TLS there"},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, tc.answer, tc.tls)
			if tc.redis != "" {
				requireHidden(t, policy.Store{Type: policy.RedisStore, Address: address, TLS: tc.tls != nil}, tc.secret, tc.redis)
			}
			if tc.other != "" {
				requireHidden(t, policy.Store{Type: policy.PostgresStore, Address: address, Database: "d"},
					map[string][]byte{"username": []byte("app"), "password": []byte("p")}, tc.other)
			}
		})
	}
}

// requireHidden asks the store in every way that an error can get out of.
func requireHidden(t *testing.T, of policy.Store, secret map[string][]byte, say string) {
	t.Helper()
	p := New(backend.Opener{}.Open)
	asks := map[string]func() error{
		"Probe": func() error { _, err := p.Probe(t.Context(), of, secret); return err },
		"Facts": func() error { _, err := p.Facts(t.Context(), of, secret); return err },
		"Clock": func() error { _, err := p.Clock(t.Context(), of, secret); return err },
		"Reset": func() error {
			hash := "x"
			_, err := p.Reset(t.Context(), of, secret, store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}, &hash)
			return err
		},
	}
	for name, ask := range asks {
		err := ask()
		if err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s of %s: %v, want an error that says %q", name, of.Type, err, say)
		}
		if err != nil && strings.Contains(strings.ToUpper(err.Error()), secretText) {
			t.Errorf("%s of %s shows what the server sent: %v", name, of.Type, err)
		}
	}
}

// serve answers every connection with the bytes once it has sent something, encrypted if it
// has a certificate, and leaves it open.
func serve(t *testing.T, answer string, encryption *tls.Config) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if encryption != nil && len(encryption.Certificates) > 0 {
		l = tls.NewListener(l, encryption)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				if _, err := in.ReadByte(); err != nil {
					return
				}
				_, _ = conn.Write([]byte(answer)) // the client may be gone
				_, _ = in.WriteTo(discard{})
			})
		}
	})
	return address
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// certificateOf returns a certificate of a name, and itself as its authority.
func certificateOf(t *testing.T, name string) (authority []byte, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

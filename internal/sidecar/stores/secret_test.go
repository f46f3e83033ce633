package stores_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/stores"
	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

const hidden = "s3cr3t"

// credentials returns secret shop/db with a password.
func credentials(version, password string) stores.Secret {
	return stores.Secret{Name: "shop/db", Version: version, Data: map[string][]byte{
		"username": []byte("app"), "password": []byte(password),
	}}
}

// passwordServer starts a Postgres that wants a password of user app, and returns
// it and its store.
func passwordServer(t *testing.T) (*postgrestest.Server, policy.Store) {
	t.Helper()
	server := postgrestest.Start(t, "password_encryption=scram-sha-256")
	server.Do("CREATE ROLE app LOGIN SUPERUSER PASSWORD '" + hidden + "'")
	server.WriteFile("pg_hba.conf", []byte("host all app all scram-sha-256\nlocal all all trust\nhost all all all trust\n"))
	server.Do("SELECT pg_reload_conf()")
	return server, policy.Store{
		Type: policy.PostgresStore, Address: server.Addr, Database: "postgres", Secret: "shop/db", SecretVersion: "1",
	}
}

func take(s twotier.Store) error {
	_, err := s.Apply(context.Background(), store.Key{Scope: store.Scope{Cluster: "test", Namespace: "shop", Policy: "p", Limit: "l"}},
		limiter.Params{Rates: []limiter.Rate{{Limit: 10, Window: limiter.Second}}}, limiter.Command{Op: limiter.Take, Min: 1, Want: 1})
	return err
}

// eventually waits until the store answers as it should.
func eventually(t *testing.T, s twotier.Store, good func(error) bool) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if err = take(s); good(err) {
			return
		}
	}
	t.Fatalf("at last the store says %v", err)
}

func answers(err error) bool { return err == nil }

func unavailable(text string) func(error) bool {
	return func(err error) bool {
		_, is := errors.AsType[*store.UnavailableError](err)
		return is && strings.Contains(err.Error(), text)
	}
}

// TestAStoreWaitsForItsCredentialsAndFollowsThem goes through the life of a
// password: it has not arrived, it arrives, it is wrong, it is right again. The
// breaker stays the same, so engines that leased from the store go on.
func TestAStoreWaitsForItsCredentialsAndFollowsThem(t *testing.T) {
	t.Parallel() // it waits for a breaker that is open
	_, of := passwordServer(t)
	p := newPool(t)
	s := open(t, p, of)
	err := take(s)
	if !unavailable("secret shop/db, have not arrived")(err) {
		t.Fatalf("without credentials the store says %v", err)
	}
	p.Learn([]stores.Secret{credentials("1", hidden)})
	eventually(t, s, answers)

	p.Learn([]stores.Secret{credentials("2", "guess")})
	of.SecretVersion = "2"
	if open(t, p, of) != s {
		t.Error("other credentials made another store")
	}
	eventually(t, s, unavailable(of.Address))
	if err := take(s); err == nil || strings.Contains(err.Error(), "guess") {
		t.Errorf("with a wrong password the store says %v", err)
	}

	p.Learn([]stores.Secret{credentials("3", hidden)})
	eventually(t, s, answers)
}

func TestCredentialsThatArriveFirstAreUsed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "app", "on", ">"+hidden, "~*", "&*", "+@all")
	server.Do("ACL", "SETUSER", "default", "on", "nopass", "~*", "+@admin", "-@write")
	for name, tc := range map[string]struct {
		password string
		want     func(error) bool
	}{
		"the right ones": {hidden, answers},
		"wrong ones":     {"guess", unavailable("password")},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t)
			p.Learn([]stores.Secret{credentials("1", tc.password)})
			of := redisAt(server.Addr)
			of.Secret, of.SecretVersion = "shop/db", "1"
			eventually(t, open(t, p, of), tc.want)
		})
	}
}

// TestBadCredentialsNameTheKeyAndTheCure: the policies of other stores do not
// suffer.
func TestBadCredentialsNameTheKeyAndTheCure(t *testing.T) {
	for name, tc := range map[string]struct {
		data map[string][]byte
		want string
	}{
		"no user":                      {nil, "username of secret shop/db"},
		"an authority that is not one": {map[string][]byte{"username": []byte("u"), "ca.crt": []byte(hidden)}, "ca.crt of secret shop/db"},
		"half a pair":                  {map[string][]byte{"username": []byte("u"), "tls.crt": []byte(hidden)}, "tls.key of secret shop/db"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t)
			p.Learn([]stores.Secret{{Name: "shop/db", Version: "1", Data: tc.data}})
			s := open(t, p, policy.Store{
				Type: policy.PostgresStore, Address: "127.0.0.1:1", Database: "d", TLS: true, Secret: "shop/db", SecretVersion: "1",
			})
			if err := take(s); !unavailable(tc.want)(err) || strings.Contains(err.Error(), hidden) {
				t.Errorf("the store says %v", err)
			}
		})
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	s := credentials("1", hidden)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{s, &s, []stores.Secret{s}} {
			if text := fmt.Sprintf(verb, value); strings.Contains(text, hidden) || strings.Contains(text, fmt.Sprintf("%x", hidden)) {
				t.Errorf("%s prints %s", verb, text)
			}
		}
	}
	if text, err := json.Marshal([]stores.Secret{s}); err != nil || strings.Contains(string(text), "czNjcjN0") || !strings.Contains(string(text), "shop/db") {
		t.Errorf("as JSON: %s, %v", text, err)
	}
}

package redis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/redis"
)

func TestOptionsThatCannotWorkNameTheCure(t *testing.T) {
	one := []string{"redis:6379"}
	for name, c := range map[string]struct {
		options redis.Options
		say     string
	}{
		"no address":                   {redis.Options{}, "addresses is empty: name host:port"},
		"two servers":                  {redis.Options{Addresses: []string{"a:1", "b:1"}}, "set cluster, or sentinel"},
		"a cluster behind Sentinels":   {redis.Options{Addresses: one, Cluster: true, Sentinel: "primary"}, "exclude each other"},
		"a database of a cluster":      {redis.Options{Addresses: one, Cluster: true, DB: 1}, "only database 0"},
		"a negative database":          {redis.Options{Addresses: one, DB: -1}, "at least 0"},
		"no port":                      {redis.Options{Addresses: []string{"redis"}}, `addresses[0] is "redis", must be host:port`},
		"no host":                      {redis.Options{Addresses: []string{":6379"}}, "must be host:port"},
		"a port that is not one":       {redis.Options{Addresses: []string{"redis:0"}}, "must be host:port"},
		"a URL":                        {redis.Options{Addresses: []string{"redis://:secret@redis:6379"}}, "addresses[0] is a URL"},
		"a password in the address":    {redis.Options{Addresses: []string{":secret@redis:6379"}}, "addresses[0] is a URL"},
		"a socket of a cluster":        {redis.Options{Addresses: []string{"/run/redis.sock"}, Cluster: true}, "reached by host:port"},
		"a socket of a Sentinel":       {redis.Options{Addresses: []string{"/run/redis.sock"}, Sentinel: "primary"}, "reached by host:port"},
		"an encrypted socket":          {redis.Options{Addresses: []string{"/run/redis.sock"}, TLS: &tls.Config{}}, "leave TLS out"},
		"a user without password":      {redis.Options{Addresses: one, User: "weir"}, "user has no password"},
		"a Sentinel's user without":    {redis.Options{Addresses: one, Sentinel: "p", SentinelUser: "u"}, "sentinelPassword"},
		"a password for no Sentinel":   {redis.Options{Addresses: one, SentinelPassword: "secret"}, "sentinel is not"},
		"the second of two that wrong": {redis.Options{Addresses: []string{"a:1", "b"}, Cluster: true}, "addresses[1]"},
	} {
		s, err := redis.Open(c.options)
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.say) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error is %v, want one that says %q and no password", name, err, c.say)
		}
	}
}

// TestControlIsAskedAboutEveryAddress also about those that Sentinels and nodes name.
func TestControlIsAskedAboutEveryAddress(t *testing.T) {
	server := redistest.Start(t)
	sentinels := redistest.StartSentinels(t, 1, "main", server)
	nodes := redistest.StartCluster(t, 3).Addrs()
	for name, c := range map[string]struct {
		options redis.Options
		denied  string
	}{
		"a server":                          {redis.Options{Addresses: []string{server.Addr}}, server.Addr},
		"a server that is to be encrypted":  {redis.Options{Addresses: []string{server.Addr}, TLS: &tls.Config{}}, server.Addr},
		"a Sentinel":                        {redis.Options{Addresses: sentinels, Sentinel: "main"}, sentinels[0]},
		"the primary that a Sentinel names": {redis.Options{Addresses: sentinels, Sentinel: "main"}, server.Addr},
		"a node":                            {redis.Options{Addresses: nodes[:1], Cluster: true}, nodes[0]},
		"a node that another one names":     {redis.Options{Addresses: nodes[:1], Cluster: true}, nodes[2]},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.Control = func(_ context.Context, _, address string, _ syscall.RawConn) error {
				if address == c.denied {
					return &store.Failure{Why: "it may not be dialled"}
				}
				return nil
			}
			_, err := open(t, c.options).Probe(t.Context())
			wantUnavailable(t, err, "it may not be dialled")
			if plain := store.Plain(err); !strings.HasSuffix(plain.Error(), ": it may not be dialled") {
				t.Errorf("plainly: %v", plain)
			}
		})
	}
}

// A counted connection counts what is written.
type counted struct {
	net.Conn
	writes *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// TestConnIsUsedInThePlaceOfEachConnection, of nodes and of the primary that a Sentinel names, too.
func TestConnIsUsedInThePlaceOfEachConnection(t *testing.T) {
	server := redistest.Start(t)
	for name, o := range map[string]redis.Options{
		"a server":         {Addresses: []string{server.Addr}},
		"behind Sentinels": {Addresses: redistest.StartSentinels(t, 1, "main", server), Sentinel: "main"},
		"a cluster":        {Addresses: redistest.StartCluster(t, 3).Addrs(), Cluster: true},
	} {
		t.Run(name, func(t *testing.T) {
			var made, writes atomic.Int64
			o.Conn = func(c net.Conn) net.Conn {
				made.Add(1)
				return counted{c, &writes}
			}
			everything(t, open(t, o))
			if made.Load() == 0 || writes.Load() < 5 {
				t.Errorf("%d connections were made, and %d times written to", made.Load(), writes.Load())
			}
		})
	}
}

func TestAnAddressWithAPasswordIsNotRepeated(t *testing.T) {
	s := redis.Dial("redis://:secret@127.0.0.1:1")
	defer s.Close()
	_, err := s.Apply(t.Context(), counterOf("a"), perWindow(1, limiter.Second), lease)
	wantUnavailable(t, err)
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("error %q shows the password", err)
	}
	if away, _ := errors.AsType[*store.UnavailableError](err); away != nil && away.Part != nil {
		t.Errorf("error %q speaks for a part of a single server", err)
	}
}

// permissions are what the package's documentation asks for.
var permissions = []any{
	"resetkeys", "~weir:*", "resetchannels", "-@all",
	"+evalsha", "+info", "+time", "+mget", "+get", "+set", "+zadd", // without which nothing works
	"+zrangebyscore", "+zrem", "+del", "+pttl", "+pexpireat", "+config|get", "+eval", "+hello", "+client|setname", "+watch", "+unwatch", "+multi", "+exec",
}

func TestAUserNeedsNoMoreThanIsDocumented(t *testing.T) {
	server := redistest.Start(t)
	server.Do(append([]any{"ACL", "SETUSER", "weir", "on", ">secret"}, permissions...)...)
	server.Do("ACL", "SETUSER", "default", "-@all", "+ping", "+acl", "+script", "+flushall")
	s := open(t, redis.Options{Addresses: []string{server.Addr}, User: "weir", Password: "secret"})
	everything(t, s)
	server.FlushScripts()
	everything(t, s)
	if denied := server.Do("ACL", "LOG").([]any); len(denied) > 0 {
		t.Errorf("denied on the way: %v", denied)
	}

	for _, p := range permissions[4:11] {
		server.Do("ACL", "SETUSER", "weir", strings.Replace(p.(string), "+", "-", 1))
		server.Do("FLUSHALL")
		_, err := s.Apply(t.Context(), counterOf("denied"), perWindow(1, limiter.Second), lease)
		wantUnavailable(t, err, "ACL")
		server.Do("ACL", "SETUSER", "weir", p)
	}
}

// everything uses a store in every way.
func everything(t *testing.T, s *redis.Store) {
	t.Helper()
	untilGranted(t, s, counterOf("a"), perWindow(5, limiter.MinWindow))
	refresh(t, s)
	if err := s.Warm(t.Context()); err != nil {
		t.Errorf("Warm: %v", err)
	}
	if _, err := s.Probe(t.Context()); err != nil {
		t.Errorf("Probe: %v", err)
	}
	var admitted bool
	if err := s.Update(t.Context(), counterOf("a"), count(1000, &admitted)); err != nil || !admitted {
		t.Errorf("Update: admitted %t, %v", admitted, err)
	}
}

func TestWrongCredentialsAreUnavailable(t *testing.T) {
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "weir", "on", ">right", "~*", "+@all")
	s := open(t, redis.Options{Addresses: []string{server.Addr}, User: "weir", Password: "wrong-secret"})
	_, err := s.Apply(t.Context(), counterOf("a"), perWindow(1, limiter.Second), lease)
	wantUnavailable(t, err, "user name or password", server.Addr)
	if strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("error %q shows the password", err)
	}
}

func TestASocketAndADatabase(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "redis.sock")
	server := redistest.Start(t, "--unixsocket", socket)
	s := open(t, redis.Options{Addresses: []string{socket}, DB: 3})
	everything(t, s)
	if n := counters(server); n != 0 {
		t.Errorf("%d counters in database 0", n)
	}
	if keyspace := server.Do("INFO", "keyspace").(string); !strings.Contains(keyspace, "db3:") {
		t.Errorf("nothing is in database 3: %s", keyspace)
	}
}

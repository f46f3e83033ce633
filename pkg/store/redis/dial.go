package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/weir-dev/weir/pkg/store"
)

// Settings of the connections that Open makes.
const (
	// callTimeout bounds a call whose context has no earlier deadline, and how
	// long a cancelled call may linger.
	callTimeout = time.Second
	// idleTimeout is how long a connection is kept that nobody uses. Many a load balancer
	// or NAT forgets it after four minutes and drops without a word what is sent later.
	idleTimeout = 2 * time.Minute
	// bufferBytes holds one command or reply: sidecars keep several connections
	// and little memory.
	bufferBytes = 4 << 10
	clientName  = "weir"
)

// Options say where the servers are and how to reach them.
type Options struct {
	// Addresses are host:port each: one, of a single server, which may also be the
	// path of a Unix socket; or some nodes of a cluster or some Sentinels, from which
	// the others are learned.
	Addresses []string
	// Cluster makes the addresses nodes of a Redis Cluster.
	Cluster bool
	// Sentinel is the name of the primary that the Sentinels at the addresses watch;
	// empty means that the addresses are not Sentinels.
	Sentinel string

	// DB is the number of the database, 0 unless the server is set up for another.
	// A cluster has only 0.
	DB int
	// User and Password are those of an ACL user; without User the password is that
	// of the default user.
	User, Password string
	// SentinelUser and SentinelPassword are those of the Sentinels, which do not know
	// the users of the servers.
	SentinelUser, SentinelPassword string
	// TLS encrypts every connection, to Sentinels too, and may hold authorities and a
	// client certificate. Each certificate must be good for ServerName or, when that
	// is empty, for the address that is dialled: nodes and Sentinels report addresses
	// that are mostly IPs. Nil means no encryption.
	TLS *tls.Config
	// Control is asked about every address that is dialled, also of Sentinels and of the
	// servers and nodes that they name. Nil allows all.
	Control store.Control
	// Conn returns what is used in the place of a connection that is not encrypted, and that
	// it takes over. Nil leaves connections as they are.
	Conn func(net.Conn) net.Conn
}

// Open returns a store. It connects when first used, so an unreachable server is an
// error of Apply. Calls end at their context's deadline, at the latest after a
// second. The error names the option that is wrong, and what to put instead.
//
// Open silences the client library's own log for the process: whatever it says is
// an error of a call too.
func Open(o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	silence()
	s := New(o.client(), o.name())
	s.watched = o.Sentinel != ""
	return s, nil
}

// Dial is Open for one server that wants no credentials, host:port or the path of a
// Unix socket. An address that is wrong is an error of every call.
func Dial(address string) *Store {
	silence()
	o := Options{Addresses: []string{address}}
	if err := o.validate(); err != nil {
		refuse := func(context.Context, string, string) (net.Conn, error) { return nil, err }
		return New(goredis.NewClient(&goredis.Options{Dialer: refuse, MaxRetries: -1, DialerRetries: 1}), o.name())
	}
	return New(o.client(), o.name())
}

func (o Options) validate() error {
	switch {
	case len(o.Addresses) == 0:
		return errors.New("addresses is empty: name host:port of a Redis server, or of nodes of a cluster, or of Sentinels")
	case o.Cluster && o.Sentinel != "":
		return errors.New("cluster and sentinel exclude each other: nodes of a cluster fail over by themselves")
	case len(o.Addresses) > 1 && !o.Cluster && o.Sentinel == "":
		return fmt.Errorf("addresses names %d servers: name one, or set cluster, or sentinel to the name of the primary", len(o.Addresses))
	case o.DB < 0:
		return fmt.Errorf("db is %d, must be at least 0", o.DB)
	case o.Cluster && o.DB != 0:
		return fmt.Errorf("db is %d, but a cluster has only database 0", o.DB)
	case o.User != "" && o.Password == "":
		return errors.New("user has no password: give any when the ACL says nopass")
	case o.SentinelUser != "" && o.SentinelPassword == "":
		return errors.New("sentinelUser has no sentinelPassword: give any when the ACL says nopass")
	case o.SentinelPassword != "" && o.Sentinel == "":
		return errors.New("sentinelPassword is set, but sentinel is not: name the primary that the Sentinels watch")
	}
	for i, a := range o.Addresses {
		if err := o.validateAddress(a); err != nil {
			return fmt.Errorf("addresses[%d] %w", i, err)
		}
	}
	return nil
}

// validateAddress does not repeat an address that may hold a password.
func (o Options) validateAddress(address string) error {
	if strings.Contains(address, "@") || strings.Contains(address, "://") {
		return errors.New("is a URL: write host:port, and put the password into its own field")
	}
	if strings.HasPrefix(address, "/") {
		switch {
		case o.Cluster || o.Sentinel != "":
			return fmt.Errorf("is the socket %q, but nodes and Sentinels are reached by host:port", address)
		case o.TLS != nil:
			return fmt.Errorf("is the socket %q, which is not encrypted: leave TLS out", address)
		}
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if n, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || n == 0 || host == "" {
		return fmt.Errorf("is %q, must be host:port, for example redis:6379", address)
	}
	return nil
}

// name is how errors call the servers.
func (o Options) name() string {
	at := strings.Join(o.Addresses, ", ")
	at = at[strings.LastIndex(at, "@")+1:] // what is before may be a password
	switch {
	case o.Cluster:
		return "redis cluster at " + at
	case o.Sentinel != "":
		return fmt.Sprintf("redis %s of the Sentinels at %s", o.Sentinel, at)
	default:
		return "redis at " + at
	}
}

func (o Options) client() goredis.UniversalClient {
	switch {
	case o.Cluster:
		return goredis.NewClusterClient(o.cluster())
	case o.Sentinel != "":
		return goredis.NewFailoverClient(o.failover())
	default:
		return goredis.NewClient(o.single())
	}
}

// dialer returns how connections are made, nil when the client's own way will do. The client
// leaves encryption to a dialer, if it is given one.
func (o Options) dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: callTimeout, ControlContext: o.Control}
	switch {
	case o.TLS == nil && o.Conn != nil:
		return func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := plain.DialContext(ctx, network, address)
			if err != nil {
				return nil, err //nolint:wrapcheck // of the client, which explains it
			}
			return o.Conn(conn), nil
		}
	case o.Control == nil:
		return nil
	case o.TLS == nil:
		return plain.DialContext
	default:
		return (&tls.Dialer{NetDialer: plain, Config: o.TLS}).DialContext
	}
}

func (o Options) single() *goredis.Options { return o.universal().Simple() }

func (o Options) failover() *goredis.FailoverOptions { return o.universal().Failover() }

func (o Options) cluster() *goredis.ClusterOptions {
	c := o.universal().Cluster()
	c.DisableRoutingPolicies = true // every command has a key, and a restricted user may not ask for the policies
	return c
}

func (o Options) universal() *goredis.UniversalOptions {
	u := clientOptions(o.dialer())
	u.Addrs, u.DB, u.Username, u.Password, u.TLSConfig = o.Addresses, o.DB, o.User, o.Password, o.TLS
	u.MasterName, u.SentinelUsername, u.SentinelPassword = o.Sentinel, o.SentinelUser, o.SentinelPassword
	u.ClientName = clientName
	return u
}

// clientOptions are those of every client. A call is made once, and ends with its context.
func clientOptions(dial func(ctx context.Context, network, address string) (net.Conn, error)) *goredis.UniversalOptions {
	return &goredis.UniversalOptions{
		Dialer:                   dial,
		ContextTimeoutEnabled:    true,
		DialTimeout:              callTimeout,
		DialerRetries:            1,
		ReadTimeout:              callTimeout,
		WriteTimeout:             callTimeout,
		PoolTimeout:              callTimeout,
		ConnMaxIdleTime:          idleTimeout,
		MaxRetries:               -1,
		ReadBufferSize:           bufferBytes,
		WriteBufferSize:          bufferBytes,
		PipelineReadBufferSize:   bufferBytes,
		PipelineWriteBufferSize:  bufferBytes,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

var silence = sync.OnceFunc(func() { goredis.SetLogger(silentLogger{}) })

type silentLogger struct{}

func (silentLogger) Printf(context.Context, string, ...any) {}

package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-dev/weir/pkg/store"
)

const (
	// defaultTimeout bounds a call whose context has no earlier deadline.
	defaultTimeout = time.Second
	// connectTimeout bounds how long a connection takes to be made. That goes on beside the
	// calls that wait for it, which may give up before.
	connectTimeout = 3 * time.Second
	// serverShare of the time-out lets the server end a call that waits for a lock before the client
	// gives the connection up.
	serverShare = 0.9
	// installTimeout bounds how long the first call to a database may take in addition,
	// which makes what it lacks.
	installTimeout = 10 * time.Second
	// idleTimeout is how long a connection is kept that nobody uses; the pool looks every
	// minute. Many a load balancer or NAT forgets it after four minutes and drops without
	// a word what is sent later.
	idleTimeout = 2 * time.Minute
	// defaultConnections is how many connections there are at most: sidecars are
	// many, and each connection is a process of the server.
	defaultConnections = 4
	defaultPort        = 5432
)

// Options say where a database is and how to reach it.
type Options struct {
	// Address is host:port, or host for port 5432.
	Address string
	// Database is the name of the database; empty means that of the user.
	Database string
	User     string
	Password string
	// TLS encrypts the connections and may hold a client certificate. ServerName is
	// the host's when it is empty. Nil means no encryption.
	TLS *tls.Config
	// Connections is how many connections there are at most, 0 means 4.
	Connections int
	// Timeout bounds a call whose context has no earlier deadline; 0 means a second.
	Timeout time.Duration
	// Control is asked about every address that is dialled. Nil allows all.
	Control store.Control
}

// Dial returns a store in one database. It connects when first used, so an
// unreachable server is an error of Apply. Calls end at their context's deadline, at
// the latest after Timeout, or after ten seconds more while the database is made ready. The error names an option that is wrong.
func Dial(o Options) (*Store, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	s, err := newStore(config, newProgram(read("clock")), o.timeout())
	if err == nil {
		s.control = o.Control
	}
	return s, err
}

func (o Options) timeout() time.Duration { return cmp.Or(o.Timeout, defaultTimeout) }

func (o Options) config() (*pgxpool.Config, error) {
	host, port, err := o.hostPort()
	if err != nil {
		return nil, err
	}
	switch {
	case o.User == "":
		return nil, fmt.Errorf("the user name for postgres at %s is empty", o.Address)
	case o.Connections < 0:
		return nil, fmt.Errorf("connections is %d, must be at least 1, or 0 for the default", o.Connections)
	case o.Timeout < 0:
		return nil, fmt.Errorf("timeout is %v, must be positive, or 0 for the default", o.Timeout)
	}
	// Every setting is written over, so that none comes from the environment.
	config, err := pgxpool.ParseConfig("sslmode=disable")
	if err != nil {
		return nil, fmt.Errorf("defaults of the client: %w", err)
	}
	c := &config.ConnConfig.Config
	c.Host, c.Port, c.Database, c.User, c.Password = host, port, o.Database, o.User, o.Password
	c.Fallbacks, c.ValidateConnect, c.AfterConnect = nil, nil, nil
	c.ConnectTimeout = connectTimeout
	c.TLSConfig = o.tls(host)
	c.RuntimeParams = map[string]string{
		"application_name":              "weir",
		"search_path":                   "",
		"default_transaction_isolation": "read committed",
		"plan_cache_mode":               "force_generic_plan", // no argument changes a plan
		"synchronous_commit":            "on",                 // of use to logged tables only
		"statement_timeout":             strconv.Itoa(int(serverShare * float64(o.timeout().Milliseconds()))),
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	config.MaxConns = defaultConnections
	if o.Connections > 0 {
		config.MaxConns = int32(min(o.Connections, 1000))
	}
	config.MaxConnIdleTime = idleTimeout
	config.PrepareConn = alive
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	return config, nil
}

// hostPort splits the address.
func (o Options) hostPort() (string, uint16, error) {
	host, port, err := net.SplitHostPort(o.Address)
	if err != nil {
		host, port = o.Address, strconv.Itoa(defaultPort)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if host == "" || n == 0 || err != nil {
		return "", 0, fmt.Errorf("the address of postgres is %q, must be host:port or host", o.Address)
	}
	return host, uint16(n), nil
}

func (o Options) tls(host string) *tls.Config {
	if o.TLS == nil {
		return nil
	}
	config := o.TLS.Clone()
	if config.ServerName == "" {
		config.ServerName = host
	}
	return config
}

package backend

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/weir-dev/weir/pkg/concurrency"
	postgrespool "github.com/weir-dev/weir/pkg/concurrency/coordinator/postgres"
	redispool "github.com/weir-dev/weir/pkg/concurrency/coordinator/redis"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/postgres"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// A Backend is an open store. It is safe for concurrent use. All methods but Close
// block until their context is done at the latest.
type Backend interface {
	Counters
	// Probe returns what the store says of itself.
	Probe(ctx context.Context) (store.Facts, error)
	// Coordinator returns the coordinator of concurrency pools in the store, over the
	// same connections.
	Coordinator() concurrency.Coordinator
	// Close ends the calls under way. Nothing may be called afterwards.
	Close() error
}

// Counters are what a store keeps.
type Counters interface {
	// Apply decides a command on a counter by the store's own clock.
	Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error)
	// Refresh has a store that forgot its counters begin a new memory.
	Refresh(ctx context.Context) error
	// Reached notes what others know of the store's clock, so that it decides nothing by an
	// earlier instant on behalf of this holder.
	Reached(by store.Reached)
	// Reset sets all counters of a limit back, or the one of hash when it is not nil, and
	// returns how many there were. Each begins with a full limit, and units that holders
	// have in hand stay good. After an error some of them may be set back.
	Reset(ctx context.Context, scope store.Scope, hash *string) (int, error)
}

// An Opener opens stores. The zero Opener connects to every address.
type Opener struct {
	// Control is asked about every address that is dialled. Nil allows all.
	Control store.Control
	// Plain is asked in its place where a token is sent without encryption, by http. Nil is
	// Control.
	Plain store.Control
	// Conn makes of each connection to a Redis without encryption the one that is used; see
	// redis.Options. Nil leaves connections as they are.
	Conn func(net.Conn) net.Conn
}

// Open opens a store of type Redis or Postgres with the values of the Secret it names,
// by the keys that package policy names. Values that a store has no use for are
// ignored. It does not wait for a connection: a store that cannot be reached, or
// refuses the credentials, is an error of Apply. The error names the value that is
// wrong, never shows one, and says what to put instead. The caller closes the Backend.
func (o Opener) Open(of policy.Store, secret map[string][]byte) (Backend, error) {
	switch of.Type {
	case policy.RedisStore:
		r, err := o.Redis(of, secret)
		return opened(inRedis{r}, err)
	case policy.PostgresStore:
		p, err := o.Postgres(of, secret)
		return opened(inPostgres{p}, err)
	default:
		return nil, fmt.Errorf("store type %q is not one that this version can open", of.Type)
	}
}

// opened returns no store as none rather than as one without connections.
func opened(b Backend, err error) (Backend, error) {
	if err != nil {
		return nil, err
	}
	return b, nil
}

type (
	inRedis    struct{ *redis.Store }
	inPostgres struct{ *postgres.Store }
)

// Coordinator implements Backend.
func (b inRedis) Coordinator() concurrency.Coordinator { return redispool.New(b.Store) }

// Coordinator implements Backend.
func (b inPostgres) Coordinator() concurrency.Coordinator { return postgrespool.New(b.Store) }

// Redis is Open of a store of type Redis, as it is.
func (o Opener) Redis(of policy.Store, secret map[string][]byte) (*redis.Store, error) {
	values := credentials{of: of, values: secret}
	switch {
	case !of.REST:
		return values.redis(o)
	case of.TLS || o.Plain == nil:
		return values.rest(o.Control)
	default:
		return values.rest(o.Plain)
	}
}

// Postgres is Open of a store of type Postgres, as it is.
func (o Opener) Postgres(of policy.Store, secret map[string][]byte) (*postgres.Store, error) {
	return credentials{of: of, values: secret}.postgres(o.Control)
}

func (s credentials) redis(by Opener) (*redis.Store, error) {
	encryption, err := s.encryption()
	if err != nil {
		return nil, err
	}
	o := redis.Options{
		Addresses: strings.Split(s.of.Address, ","), Cluster: s.of.Cluster, Sentinel: s.of.Sentinel, TLS: encryption,
		Control: by.Control, Conn: by.Conn,
	}
	if o.User, o.Password, err = s.login(policy.SecretUsername, policy.SecretPassword); err != nil {
		return nil, err
	}
	if s.of.Sentinel != "" { // the same Secret may serve a store without Sentinels
		o.SentinelUser, o.SentinelPassword, err = s.login(policy.SecretSentinelUsername, policy.SecretSentinelPassword)
		if err != nil {
			return nil, err
		}
	}
	return redis.Open(o)
}

func (s credentials) rest(control store.Control) (*redis.Store, error) {
	encryption, err := s.encryption()
	if err != nil {
		return nil, err
	}
	token := strings.TrimSpace(s.text(policy.SecretToken)) // files end with a new line
	if token == "" {
		return nil, s.wrong(policy.SecretToken, "is missing: put the REST token of the database there, one that may write")
	}
	return redis.OpenREST(redis.RESTOptions{URL: s.of.Address, Token: token, TLS: encryption, Control: control})
}

func (s credentials) postgres(control store.Control) (*postgres.Store, error) {
	encryption, err := s.encryption()
	if err != nil {
		return nil, err
	}
	user := s.text(policy.SecretUsername)
	if user == "" {
		return nil, s.wrong(policy.SecretUsername, "is missing: Postgres has no user without a name")
	}
	return postgres.Dial(postgres.Options{
		Address: s.of.Address, Database: s.of.Database,
		User: user, Password: s.text(policy.SecretPassword), TLS: encryption,
		Control: control,
	})
}

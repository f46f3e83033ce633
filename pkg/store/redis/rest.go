package redis

import (
	"crypto/tls"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/redis/rest"
)

// RESTOptions say where a Redis is that is served over HTTP, and how to reach it.
type RESTOptions struct {
	// URL of its REST API, with https or http, such as https://name.upstash.io.
	URL string
	// Token that the API asks for. It must be one that may write.
	Token string
	// TLS encrypts connections to a URL with https, and may hold authorities and a client
	// certificate. Nil means the authorities of the system.
	TLS *tls.Config
	// Control is asked about every address that is dialled. Nil allows all.
	Control store.Control
}

// OpenREST is Open for a Redis that is served over HTTP. The scripts are the same, but for
// how they get arguments and know an instance. Commands that travel together are one
// request, which is sent once.
func OpenREST(o RESTOptions) (*Store, error) { return openREST(o, luaFile("server"), sinceStart()) }

func openREST(o RESTOptions, server string, clock func() int64) (*Store, error) {
	way, err := rest.New(rest.Options{URL: o.URL, Token: o.Token, TLS: o.TLS, Timeout: callTimeout, Control: o.Control})
	if err != nil {
		return nil, err
	}
	silence()
	u := clientOptions(way.Dial)
	u.Addrs, u.Protocol = []string{o.URL}, 2 // the address is for its metrics
	client := goredis.NewClient(u.Simple())
	s := newStore(client, "redis at "+o.URL, preamble(server, true), clock)
	s.rest = way
	return s, nil
}

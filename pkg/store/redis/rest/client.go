package rest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weir-dev/weir/pkg/store"
)

// Bounds of the connections. There are few of them: commands share them.
const (
	maxConnections = 16
	maxHeaders     = 16 << 10 // bytes
	idleTimeout    = 2 * time.Minute
	// A connection that carries many requests at once is asked whether it still works when
	// nothing came for that long; otherwise every request would wait on one that is dead.
	pingAfter, pingTimeout = 5 * time.Second, time.Second
)

// Options say where a database is and how to reach it.
type Options struct {
	// URL of the API, with https or http.
	URL string
	// Token that the API asks for.
	Token string
	// TLS encrypts the connections to a URL with https, and may hold authorities and a
	// client certificate. Nil means those of the system, and none.
	TLS *tls.Config
	// Timeout of a dial and of a handshake.
	Timeout time.Duration
	// Control is asked about every address that is dialled. Nil allows all.
	Control store.Control
}

// A Client sends requests. It is safe for concurrent use.
type Client struct {
	transport   *http.Transport
	one, many   string // URLs
	token, host string
}

// New returns a client, which connects when first used. The error says what is wrong with
// the URL or the token, and does not show either.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return nil, errors.New("the URL is not one: write https and a host, such as https://name.example.com")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return nil, errors.New("the URL has a user, a query or a fragment: write https, a host and a path, and put the token into its own field")
	case o.Token == "" || strings.ContainsFunc(o.Token, notInToken):
		return nil, errors.New("the token is empty or has characters that no token has: give the REST token of the database")
	}
	base := strings.TrimRight(u.Scheme+"://"+u.Host+u.EscapedPath(), "/")
	return &Client{transport: newTransport(o), one: base + "/", many: base + "/pipeline", token: "Bearer " + o.Token, host: u.Host}, nil
}

// notInToken reports characters that would end a header, or may not be part of one.
func notInToken(r rune) bool { return r <= ' ' || r > '~' }

func newTransport(o Options) *http.Transport {
	encryption := o.TLS.Clone()
	if encryption == nil {
		encryption = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: o.Timeout, ControlContext: o.Control}).DialContext,
		TLSClientConfig:        encryption,
		TLSHandshakeTimeout:    o.Timeout,
		ForceAttemptHTTP2:      true, // despite the settings above
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		MaxConnsPerHost:        maxConnections,
		MaxIdleConnsPerHost:    maxConnections,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaders,
		DisableCompression:     true,
	}
}

// Dial returns a connection to the database whatever the address. It does not block: what
// cannot be reached is an error of Read.
func (c *Client) Dial(context.Context, string, string) (net.Conn, error) {
	life, end := context.WithCancel(context.Background())
	return &conn{client: c, life: life, end: end}, nil
}

// Close closes connections that nothing is under way on. Close the connections that Dial
// returned first: their requests end with them.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

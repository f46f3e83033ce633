package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	closedAfter  = 20 * time.Millisecond // without a request the app closes a connection
	staleRounds  = 150
	staleClients = 8
)

// reuseHTTP1 speaks HTTP/1 on both sides, and shares connections to the app between clients.
const reuseHTTP1 haproxyConfig = haproxyDefaults + `
frontend f
  bind %s
  default_backend b
backend b
  http-reuse always
  server app %s
`

// TestStaleConnections sends requests in the moments in which an app closes the connections that they
// may go over, and counts those that are answered by it. Through a sidecar all GETs are. A POST may be lost then, and
// is answered with 502: none reaches the app twice.
func TestStaleConnections(t *testing.T) {
	var apps []*staleApp
	all := inFrontOf(t, reuseHTTP1, func() string {
		apps = append(apps, startStaleApp(t))
		return strings.TrimPrefix(apps[len(apps)-1].URL, "http://")
	}, func(address string) error {
		c := staleClient{address: address}
		defer c.close()
		return c.ask(t.Context(), http.MethodGet, "/ready")
	})
	for i, to := range all {
		t.Run(to.name, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				answered := apps[i].play(t, to, method)
				note(method+"s while the app closes idle connections", to.name, answered, staleRounds*staleClients)
			}
		})
	}
}

// A staleApp closes connections that are idle for a moment, without notice.
type staleApp struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]int // requests by their path
}

func startStaleApp(t *testing.T) *staleApp {
	t.Helper()
	a := &staleApp{seen: map[string]int{}}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.seen[r.URL.Path]++
	}))
	a.Config.IdleTimeout = closedAfter
	a.Start()
	t.Cleanup(a.Close)
	return a
}

// count returns how often a request has come.
func (a *staleApp) count(path string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen[path]
}

// play asks by several clients at once, again and again with pauses about as long as the app keeps a
// connection, and returns how many requests were answered by it.
func (a *staleApp) play(t *testing.T, to target, method string) (answered int) {
	t.Helper()
	clients, outcomes := make([]staleClient, staleClients), make([]error, staleClients)
	for i := range clients {
		clients[i].address = to.address
		defer clients[i].close()
	}
	for round := range staleRounds {
		<-time.After(closedAfter - 2*time.Millisecond + rand.N(4*time.Millisecond))
		path := func(client int) string { return fmt.Sprintf("/%s/%d/%d", method, round, client) }
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() { outcomes[i] = clients[i].ask(t.Context(), method, path(i)) })
		}
		all.Wait()
		for i, err := range outcomes {
			seen, status := a.count(path(i)), new(statusError)
			switch {
			case err == nil && seen > 0:
				answered++
			case err == nil:
				t.Errorf("%s was answered, and not by the app", path(i))
			case !to.isOurs():
			case method == http.MethodGet, !errors.As(err, status), *status != http.StatusBadGateway:
				t.Errorf("%s: %v", path(i), err)
			}
			if to.isOurs() && method == http.MethodPost && seen > 1 {
				t.Errorf("%s has reached the app %d times", path(i), seen)
			}
		}
	}
	return answered
}

// A statusError is a status that is not 200.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("status %d", int(s)) }

// A staleClient sends requests over one connection, and over another one once that is lost.
type staleClient struct {
	address string
	conn    net.Conn // nil: it is lost
	in      *bufio.Reader
}

// ask sends a request and waits for the answer.
func (c *staleClient) ask(ctx context.Context, method, path string) (err error) {
	if c.conn == nil {
		if c.conn, err = new(net.Dialer).DialContext(ctx, "tcp", c.address); err != nil {
			return err
		}
		c.in = bufio.NewReader(c.conn)
	}
	_ = c.conn.SetDeadline(time.Now().Add(30 * time.Second))
	_, err = fmt.Fprintf(c.conn, "%s %s HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", method, path)
	if err != nil {
		c.close()
		return err
	}
	answer, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.close()
		return err
	}
	if answer.Body.Close() != nil || answer.Close {
		c.close()
	}
	if answer.StatusCode != http.StatusOK {
		return statusError(answer.StatusCode)
	}
	return nil
}

func (c *staleClient) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

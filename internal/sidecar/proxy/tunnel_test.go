package proxy_test

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/proxy"
)

func unbounded() *membudget.Port { return membudget.New(1 << 40).Port(false) }

// TestTunnelsGiveTheirSlotBack though the client neither speaks nor closes when the app
// has ended the tunnel: some time later, and at once when the request ends.
func TestTunnelsGiveTheirSlotBack(t *testing.T) {
	for name, aborts := range map[string]bool{"some time later": false, "when the request ends": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					return
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			}))
			_, k := pooled(t, app, fixed(1), decider(admit), newDivider())
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := serveOn(t, newProxy(t, app, k, decider(admit)), l, unbounded())

			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			_, _ = io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			reader := bufio.NewReader(conn)
			res, err := http.ReadResponse(reader, nil)
			if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("got %v, %v", res, err)
			}
			if held := k.States()[0].Stats.InFlight; held != 1 {
				t.Errorf("%d slots are held", held)
			}
			if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
				t.Fatalf("the end of the app is reported as %v", err)
			}
			left := time.Now()
			if aborts {
				s.Close()
			}
			eventually(t, "the slot is held", func() bool { return k.States()[0].Stats.InFlight == 0 })
			if took := time.Since(left); aborts && took > 3*time.Second { // less than a silent client has
				t.Errorf("the slot was held for %v after the request", took)
			}
		})
	}
}

// TestTheFirstFramesReachTheApp also from a client that sends them with its request, before
// it knows that there is a tunnel.
func TestTheFirstFramesReachTheApp(t *testing.T) {
	app := serve(t, echo("websocket"))
	m := metrics.New(noLimits{})
	address := serveProxy(t, proxy.New(proxy.Config{Target: app, Pool: noPool{}, Decider: decider(admit), Metrics: m, Log: slog.New(slog.DiscardHandler)}))
	for _, size := range []int{1, 2, 3000, 4096, 1 << 20} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		frames := strings.Repeat("\x81\n", size)[:size]
		go func() {
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"+frames)
			_ = conn.(*net.TCPConn).CloseWrite()
		}()
		reader := bufio.NewReader(conn)
		if res, err := http.ReadResponse(reader, nil); err != nil || res.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("got %v, %v", res, err)
		}
		if got, err := io.ReadAll(reader); err != nil || string(got) != frames {
			t.Errorf("%d bytes of %d come back, and %v", len(got), size, err)
		}
	}
	if n := testutil.ToFloat64(m.Malformed); n != 0 {
		t.Errorf("%v connections count as malformed", n)
	}
}

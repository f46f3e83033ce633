package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
)

// TestTunnelsGiveTheirSlotBack though the client neither speaks nor closes: when the app
// has ended the tunnel, and when the request ends before that.
func TestTunnelsGiveTheirSlotBack(t *testing.T) {
	for name, appLeaves := range map[string]bool{"the app leaves": true, "the request ends": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					return
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
				if !appLeaves {
					for err == nil { // the client does not read, so this blocks until the tunnel is cut
						_, err = conn.Write(make([]byte, 1<<20))
					}
				}
			}))
			_, k := pooled(t, app, fixed(1), decider(admit), newDivider())
			s := httptest.NewUnstartedServer(newProxy(t, app, k, decider(admit)))
			s.Listener = framing.Listen(s.Listener, func() {})
			s.Config.ConnContext = framing.Context
			requests, abort := context.WithCancel(t.Context())
			defer abort()
			s.Config.BaseContext = func(net.Listener) context.Context { return requests }
			s.Start()
			t.Cleanup(s.Close)

			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
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
			if held := k.State().Stats.InFlight; held != 1 {
				t.Errorf("%d slots are held", held)
			}
			if !appLeaves {
				abort()
			} else if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
				t.Fatalf("the end of the app is told as %v", err)
			}
			eventually(t, "the slot is held", func() bool { return k.State().Stats.InFlight == 0 })
		})
	}
}

package fleet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/fleetpb"
)

// TestACrowdedControllerIsAskedSeldom: one that was reached and does not let the sidecar in has more to do than
// it can. While nobody listens, the sidecar finds the next leader soon.
func TestACrowdedControllerIsAskedSeldom(t *testing.T) {
	for name, tc := range map[string]struct {
		dial        func() (net.Conn, error)
		least, most int64 // attempts in two minutes
	}{
		"nobody listens": {func() (net.Conn, error) { return nil, errors.New("connection refused") }, 120, 240},
		"it hangs up": {func() (net.Conn, error) {
			here, there := net.Pipe()
			_ = there.Close()
			return here, nil
		}, 14, 36},
		"it does not shake hands": {func() (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				for {
					if _, err := there.Read(make([]byte, 1024)); err != nil {
						return
					}
				}
			}()
			return here, nil
		}, 7, 17},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var attempts atomic.Int64
				client, err := New(Config{
					Address: "10.0.0.1:1", ServerName: "fleet", CABundle: authority(t), TokenFile: filepath.Join(t.TempDir(), "none"),
					Log: slog.New(slog.DiscardHandler),
					Dial: func(context.Context, string) (net.Conn, error) {
						attempts.Add(1)
						return tc.dial()
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				client.Run(ctx, unasked{})
				if n := attempts.Load(); n < tc.least || n > tc.most {
					t.Errorf("%d attempts, want %d to %d", n, tc.least, tc.most)
				}
			})
		})
	}
}

// unasked is the Handler of a client that reaches nobody.
type unasked struct{ Handler }

func (unasked) InForce() (version string, holders []*fleetpb.Holders_Count) { return "", nil }

func authority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestPausesGrow(t *testing.T) {
	refused := errors.New("refused")
	for _, tc := range []struct {
		err     error
		longest time.Duration
		before  backoff
		most    time.Duration // the pause is at least half of that
		after   backoff
	}{
		{refused, longestPause, backoff{}, firstPause, backoff{1, 0}},
		{refused, longestPause, backoff{2, 0}, 4 * firstPause, backoff{3, 0}},
		{refused, longestPause, backoff{3, 0}, longestPause, backoff{4, 0}},
		{refused, longestPause, backoff{100, 100}, longestPause, backoff{101, 0}},
		{refused, longestBeside, backoff{3, 0}, 8 * firstPause, backoff{4, 0}},
		{crowded{refused}, longestPause, backoff{}, firstPause, backoff{1, 1}},
		{crowded{refused}, longestPause, backoff{100, 0}, firstPause, backoff{101, 1}}, // it listens again
		{crowded{refused}, longestPause, backoff{7, 5}, 32 * firstPause, backoff{8, 6}},
		{crowded{refused}, longestPause, backoff{100, 100}, longestCrowded, backoff{101, 101}},
		{fmt.Errorf("a stream: %w", crowded{refused}), longestBeside, backoff{100, 100}, longestCrowded, backoff{101, 101}},
	} {
		for range 100 {
			b := tc.before
			if got := b.next(tc.longest, tc.err); got < tc.most/2 || got > tc.most || b != tc.after {
				t.Fatalf("after %+v, last %v: %s, want %s to %s; then %+v, want %+v", tc.before, tc.err, got, tc.most/2, tc.most, b, tc.after)
			}
			if b.reset(); b != (backoff{}) {
				t.Fatalf("after a reset: %+v", b)
			}
		}
	}
}

func TestWhyAStreamIsNotServed(t *testing.T) {
	for code, want := range map[codes.Code]bool{
		codes.ResourceExhausted: true, codes.DeadlineExceeded: true, codes.Canceled: true,
		codes.Unavailable: false, codes.Unauthenticated: false, codes.PermissionDenied: false, codes.Aborted: false,
	} {
		err := unserved(status.Error(code, "why"))
		if got := errors.Is(err, errCrowded); got != want {
			t.Errorf("%s: crowded %t, want %t", code, got, want)
		}
		if s := status.Convert(err); s.Code() != code || s.Message() != "why" {
			t.Errorf("%s: the status is %v", code, s)
		}
	}
}

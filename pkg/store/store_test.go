package store_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-dev/weir/pkg/store"
)

func TestWeakerGuaranteeWins(t *testing.T) {
	hard := store.Guarantee{Grade: store.Hard}
	split := store.Guarantee{Grade: store.HardExceptSplitBrain, Reason: "replicas"}
	best := store.Guarantee{Grade: store.BestEffort, Reason: "eviction"}
	for name, c := range map[string]struct{ a, b, want store.Guarantee }{
		"the second":              {hard, split, split},
		"the first":               {best, split, best},
		"the first of equals":     {best, store.Guarantee{Grade: store.BestEffort, Reason: "later"}, best},
		"an unknown grade":        {hard, store.Guarantee{Grade: "?"}, store.Guarantee{Grade: "?"}},
		"hard, when both are":     {hard, hard, hard},
		"the weaker, given first": {split, hard, split},
	} {
		if got := c.a.Weaker(c.b); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestDifferentCountersHaveDifferentKeys(t *testing.T) {
	scope := store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}
	for _, other := range []store.Key{
		{Scope: scope, Hash: store.HashValue("")},
		{Scope: scope, Hash: store.HashValue("x")},
		{Scope: store.Scope{Cluster: "c", Namespace: "n", Policy: "p-l", Limit: ""}},
		{Scope: store.Scope{Cluster: "c", Namespace: "n-p", Policy: "l", Limit: ""}},
	} {
		if got := other.String(); got == (store.Key{Scope: scope}).String() {
			t.Errorf("%+v has the key %q of another counter", other, got)
		}
	}
	if a, b := store.HashValue("a"), store.HashValue("b"); a == b || len(a) != 32 {
		t.Errorf("values hash to %q and %q", a, b)
	}
}

func TestUnavailableErrorNamesStoreAndCause(t *testing.T) {
	err := error(&store.UnavailableError{Store: "redis at cache:6379", Cause: context.DeadlineExceeded})
	if err.Error() != "redis at cache:6379: context deadline exceeded" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %q", err)
	}
}

// TestPlainErrorsHaveNothingOfTheirCauses and stay outages of what they are of.
func TestPlainErrorsHaveNothingOfTheirCauses(t *testing.T) {
	sent := errors.New("TOPSECRET")
	failure := &store.Failure{Why: "it refuses", Cause: sent}
	part := store.Scope{Limit: "l"}
	for name, c := range map[string]struct {
		err        error
		want, text string // the text is that of Plain when it is empty
		away       bool
	}{
		"an outage": {
			err: &store.UnavailableError{Store: "redis at r:1", Cause: failure, Part: part}, want: "redis at r:1: it refuses", away: true,
		},
		"an outage that nobody explained": {
			err:  &store.UnavailableError{Store: "redis at r:1", Cause: sent, Part: part},
			want: "redis at r:1: " + store.Plain(sent).Error(), text: "redis at r:1: TOPSECRET", away: true,
		},
		"another error":               {err: fmt.Errorf("TOPSECRET: %w", failure), want: "it refuses"},
		"an error nobody explained":   {err: sent, want: store.Plain(errors.New("another")).Error(), text: "TOPSECRET"},
		"an explanation on its own":   {err: &store.Failure{Why: "it refuses"}, want: "it refuses"},
		"one explanation of another":  {err: &store.Failure{Why: "outer", Cause: failure}, want: "outer"},
		"one that came in many parts": {err: errors.Join(sent, failure), want: "it refuses"},
	} {
		got := store.Plain(c.err)
		if got.Error() != c.want || strings.Contains(got.Error(), "TOPSECRET") || errors.Is(got, sent) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		away, ok := errors.AsType[*store.UnavailableError](got)
		if ok != c.away || ok && away.Part != part {
			t.Errorf("%s: %#v, an outage: %t", name, got, c.away)
		}
		if text := store.Text(c.err); text != cmp.Or(c.text, c.want) {
			t.Errorf("%s: the text is %q", name, text)
		}
	}
	if err := store.Plain(nil); err != nil {
		t.Errorf("no error becomes %v", err)
	}
}

// TestWhyAServerWasNotReached is about errors of names, dials, handshakes and connections.
func TestWhyAServerWasNotReached(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	verify := func(err error) error { return &tls.CertificateVerificationError{Err: err} }
	for want, err := range map[string]error{
		"cannot be resolved":          dial(&net.DNSError{Err: "no such host", Name: "r", IsNotFound: true}),
		"not resolved in time":        dial(&net.DNSError{Err: "timeout", Name: "r", IsTimeout: true}),
		"refused the connection":      dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)),
		"no route to it":              dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)),
		"answer in time":              fmt.Errorf("reading: %w", os.ErrDeadlineExceeded),
		"given up":                    context.Canceled,
		"closed the connection":       io.ErrUnexpectedEOF,
		"connection to it failed":     dial(errors.New("another")),
		"for another name":            verify(x509.HostnameError{Host: "r", Certificate: &x509.Certificate{DNSNames: []string{"TOPSECRET"}}}),
		"authority that is not trust": verify(x509.UnknownAuthorityError{}),
		"expired or is not valid yet": verify(x509.CertificateInvalidError{Reason: x509.Expired}),
		"not one of a server":         verify(x509.CertificateInvalidError{Reason: x509.IncompatibleUsage}),
		"is not accepted":             verify(errors.New("another")),
		"does not speak TLS there":    tls.RecordHeaderError{Msg: "first record"},
		"broke off the TLS handshake": &net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")},
		"TLS handshake failed":        errors.New("tls: no version that both have"),
		"it may not be dialled":       dial(&store.Failure{Why: "it may not be dialled", Cause: io.EOF}),
	} {
		if f := store.Unreached(err); f == nil || !strings.Contains(f.Why, want) || !errors.Is(f, err) {
			t.Errorf("%v: %v, want %q", err, f, want)
		}
	}
	if f := store.Unreached(errors.New("another")); f != nil {
		t.Errorf("an error of none of these kinds: %v", f)
	}
}

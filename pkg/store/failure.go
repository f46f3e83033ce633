package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// A Control is asked before an address is dialled, as [net.Dialer.ControlContext] is; its error is
// that of the dial. One that is a *Failure names the cure.
type Control = func(ctx context.Context, network, address string, c syscall.RawConn) error

// A Failure says in words of this project why a server cannot be used. Whatever that server
// sent, and addresses that it named, are in the cause alone, which is for logs.
type Failure struct {
	Why   string // a phrase that names the cure where there is one
	Cause error  // nil when there is no more to say
}

// Error returns the phrase and the cause.
func (e *Failure) Error() string {
	if e.Cause == nil {
		return e.Why
	}
	return e.Why + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *Failure) Unwrap() error { return e.Cause }

// unexpected is all that is said of an error that nobody explained.
const unexpected = "it answers otherwise than Weir expects: see that the address names such a server, in a version that Weir works with; " +
	"the log of the controller has the error"

// Plain returns an error without its cause, for texts that everybody may read: they must
// not repeat what a server sent. A *Failure is left of it, and a *UnavailableError stays
// one. An error without a *Failure leaves nothing but that there was one.
func Plain(err error) error {
	if err == nil {
		return nil
	}
	left := &Failure{Why: unexpected}
	if f, explained := errors.AsType[*Failure](err); explained {
		left.Why = f.Why
	}
	if away, ok := errors.AsType[*UnavailableError](err); ok {
		return &UnavailableError{Store: away.Store, Cause: left, Part: away.Part}
	}
	return left
}

// Text returns what Plain leaves of an error with a *Failure in it, and the whole text of
// any other, which must not come from a server.
func Text(err error) string {
	if _, explained := errors.AsType[*Failure](err); explained {
		err = Plain(err)
	}
	return err.Error()
}

// Unreached returns why a server could not be reached or broke off, by the error of its name,
// of a dial, of a handshake or of a connection; nil for any other err.
func Unreached(err error) *Failure {
	for _, explain := range []func(error) string{explained, untrusted, unresolved, late, broken} {
		if why := explain(err); why != "" {
			return &Failure{Why: why, Cause: err}
		}
	}
	return nil
}

func explained(err error) string {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Why
	}
	return ""
}

// untrusted explains errors of TLS.
func untrusted(err error) string {
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "its certificate is for another name: let it have the name or address in the certificate that is written here, or write one that the certificate has"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "its certificate is from an authority that is not trusted: put the certificate of that authority into ca.crt of the Secret"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if invalid.Reason == x509.Expired {
			return "its certificate has expired or is not valid yet: renew it, and see that the clocks are right"
		}
		return "its certificate is not one of a server, or its authority may not sign it: issue another"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate is not accepted: issue another, and put the certificate of its authority into ca.crt of the Secret"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "it does not speak TLS there: name its port for TLS, or leave tls out"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" { // of an alert
		return "it broke off the TLS handshake: see which versions of TLS it accepts, and whether it wants a client certificate (tls.crt and tls.key of the Secret)"
	}
	return ""
}

// unresolved explains errors of names.
func unresolved(err error) string {
	dns, ok := errors.AsType[*net.DNSError](err)
	switch {
	case !ok:
		return ""
	case dns.IsTimeout:
		return "its name was not resolved in time: see that the cluster's DNS answers"
	}
	return "its name cannot be resolved: see that it is written right, and that the Service or host is there"
}

// late explains errors of time.
func late(err error) string {
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.Canceled):
		return "the call was given up"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), ok && timeout.Timeout():
		return "it did not answer in time: see that it runs, and that nothing between drops the connection, such as a network policy"
	}
	return ""
}

// broken explains errors of connections.
func broken(err error) string {
	_, dialled := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refused the connection: see that it runs and listens at that port"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to it: see that the address is right, and the network between"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "it closed the connection: see that the address names such a server, and whether it wants TLS"
	case strings.Contains(err.Error(), "tls: "): // crypto/tls has no type for what it does not support
		return "the TLS handshake failed: see which versions and ciphers of TLS it accepts"
	case dialled:
		return "the connection to it failed: see that the address is right, and the network between"
	}
	return ""
}

package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"
)

// dial connects to the server. Closing the store ends the connection, also one that
// waits for a server that hangs: the client would say goodbye first.
func (s *Store) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{ControlContext: s.control}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s is not a TCP network", network), conn.Close())
	}
	return &link{TCPConn: tcp, forget: context.AfterFunc(s.closed, func() { _ = tcp.Close() })}, nil
}

// A link is a connection that ends with its store.
type link struct {
	*net.TCPConn
	forget func() bool
}

// Close ends the connection.
func (l *link) Close() error {
	l.forget()
	return l.TCPConn.Close()
}

// alive reports whether a connection that waits for its next call is still good, in
// one system call that does not block. It is not when the server closed it, or said
// that it is about to: what a call on it would then mean is not known.
func alive(_ context.Context, conn *pgx.Conn) (bool, error) {
	link := conn.PgConn().Conn()
	if secured, ok := link.(*tls.Conn); ok {
		link = secured.NetConn()
	}
	quiet, err := isQuiet(link)
	return quiet && err == nil, nil
}

// isQuiet reports whether there is nothing to read, not even the end.
func isQuiet(link net.Conn) (bool, error) {
	socket, ok := link.(syscall.Conn)
	if !ok {
		return true, nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false, err
	}
	var peeked error
	// Control and not Read, for which it would wait: after a slow write the client
	// leaves a reader of its own on the connection.
	err = raw.Control(func(fd uintptr) {
		_, _, peeked = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return errors.Is(peeked, unix.EAGAIN), err
}

package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"syscall"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"
)

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
	err = raw.Read(func(fd uintptr) bool {
		_, _, peeked = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return true
	})
	return errors.Is(peeked, unix.EAGAIN), err
}

package traffic

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// HTTP1 is a load of HTTP/1.1: each connection has one request at a time.
type HTTP1 []caller

// A caller sends the same request over one connection.
type caller struct {
	conn    net.Conn
	request []byte
	answers *bufio.Reader
}

// DialHTTP1 opens n connections and sends the request once over each: a server waits less patiently
// for a first request than for the next.
func DialHTTP1(address string, n int, request []byte) (HTTP1, error) {
	all := make(HTTP1, n)
	for i := range all {
		conn, err := net.Dial("tcp", address) //nolint:noctx // to this machine
		if err != nil {
			all[:i].Close()
			return nil, err
		}
		all[i] = caller{conn, request, bufio.NewReader(conn)}
	}
	if _, err := all.Closed(time.Time{}); err != nil {
		all.Close()
		return nil, err
	}
	return all, nil
}

// Closed implements Load.
func (all HTTP1) Closed(until time.Time) (answered int, err error) {
	return together(len(all), func(i int) (answered int, err error) {
		for {
			if err := all[i].call(); err != nil {
				return answered, err
			}
			if answered++; !time.Now().Before(until) {
				return answered, nil
			}
		}
	})
}

// Open implements Load.
func (all HTTP1) Open(perSecond int, length time.Duration) ([]time.Duration, error) {
	took := make([][]time.Duration, len(all))
	p := newPace(len(all), perSecond, length)
	_, err := together(len(all), func(i int) (int, error) {
		return 0, p.keep(i, func(sent time.Time) error {
			if err := all[i].call(); err != nil {
				return err
			}
			took[i] = append(took[i], time.Since(sent))
			return nil
		})
	})
	return sorted(took), err
}

// Close implements Load.
func (all HTTP1) Close() {
	for i := range all {
		_ = all[i].conn.Close()
	}
}

// call sends a request and reads its answer.
func (c *caller) call() error {
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	length := -1
	for first := true; ; first = false {
		line, err := c.answers.ReadSlice('\n')
		switch name, value, _ := bytes.Cut(line, []byte(":")); {
		case err != nil:
			return err
		case first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")):
			return fmt.Errorf("answered %q", line)
		case len(line) == len("\r\n"):
			if length < 0 {
				return errors.New("the answer has no length")
			}
			_, err = c.answers.Discard(length)
			return err
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
}

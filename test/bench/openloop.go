package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// callers are the connections that requests are spread over. None ever waits for
// another, so a caller is late only when an answer is.
const callers = 32

// A caller sends the same request over one connection that is kept open.
type caller struct {
	conn    net.Conn
	request []byte
	answers *bufio.Reader
}

var request = []byte("GET /path?query=1 HTTP/1.1\r\nHost: app.example\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n")

// dial opens n connections and sends the request once over each: a server waits less patiently for a
// first request than for the next.
func dial(address string, n int, request []byte) ([]caller, error) {
	all := make([]caller, n)
	for i := range all {
		conn, err := net.Dial("tcp", address) //nolint:noctx // to this machine
		if err != nil {
			hangUp(all[:i])
			return nil, err
		}
		all[i] = caller{conn, request, bufio.NewReader(conn)}
	}
	if _, err := closedLoop(all, time.Time{}); err != nil {
		hangUp(all)
		return nil, err
	}
	return all, nil
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

// hangUp closes connections.
func hangUp(all []caller) {
	for i := range all {
		_ = all[i].conn.Close()
	}
}

// openLoop sends that many requests a second for a time, whether they are answered or not,
// and returns how long each took. One that could not be sent in time, since its caller
// still waited for an answer, began when it should have; the caller's own timer is not
// counted.
func openLoop(all []caller, perSecond int, length time.Duration) ([]time.Duration, error) {
	took := make([][]time.Duration, len(all))
	failed := make([]error, len(all))
	every := time.Second / time.Duration(perSecond)
	begin := time.Now().Add(time.Millisecond)
	var running sync.WaitGroup
	for i := range all {
		running.Go(func() {
			for due := begin.Add(time.Duration(i) * every); due.Before(begin.Add(length)); due = due.Add(time.Duration(len(all)) * every) {
				sent := due
				if wait := time.Until(due); wait > 0 {
					time.Sleep(wait)
					sent = time.Now()
				}
				if failed[i] = all[i].call(); failed[i] != nil {
					return
				}
				took[i] = append(took[i], time.Since(sent))
			}
		})
	}
	running.Wait()
	return slices.Sorted(slices.Values(slices.Concat(took...))), errors.Join(failed...)
}

// percentile returns the value that as many of a thousand are not above.
func percentile(sorted []time.Duration, perMille int) float64 {
	return float64(sorted[min(len(sorted)*perMille/1000, len(sorted)-1)])
}

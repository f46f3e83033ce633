package exchange

import (
	"bufio"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
)

// client plays the client of an exchange, and returns when its connection has ended.
func (r *run) client(address string) error {
	conn, err := new(net.Dialer).DialContext(r.done, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	expires, _ := r.done.Deadline()
	_ = conn.SetDeadline(expires)
	read := make(chan struct{})
	go func() {
		defer close(read)
		end := r.answers(conn)
		r.note(func() { r.over, r.seen.End = true, end })
	}()
	r.send(conn)
	<-read
	return nil
}

// send sends the requests and ends the connection as planned.
func (r *run) send(conn net.Conn) {
	last := r.plan.last()
	for i := range r.plan.requests {
		if !r.plan.requests[i].pipelined && i > 0 && !r.await("an answer", r.answered(i-1)) {
			break
		}
		if r.request(conn, i) != nil {
			break // the other side has ended it, or is late
		}
	}
	end := r.plan.end
	if end.answer >= 0 {
		r.await("the beginning of an answer", r.received(last, 0, end.answer))
	}
	switch end.how {
	case aborts:
		_ = conn.(*net.TCPConn).SetLinger(0)
		r.leave(conn)
		return
	case leaves:
		r.leave(conn)
		return
	case closesSide:
		_ = conn.(*net.TCPConn).CloseWrite()
	case stays:
	}
	r.await("the last answer", r.answered(last))
	if !r.closesBehind() {
		r.leave(conn)
	}
}

func (r *run) leave(conn net.Conn) {
	_ = conn.Close()
	r.note(func() { r.left = true })
}

// closesBehind reports whether the other side has to end the connection behind the last answer.
func (r *run) closesBehind() bool {
	q := &r.plan.requests[r.plan.last()]
	return q.version == "HTTP/1.0" || slices.ContainsFunc(q.fields, isClose) || r.plan.end.how == closesSide
}

// request sends a request, and waits where the plan says so.
func (r *run) request(conn net.Conn, i int) error {
	q := &r.plan.requests[i]
	wire, head := q.wire(r.token, i)
	if i == r.plan.last() && r.plan.end.how != stays {
		wire = wire[:min(len(wire), r.plan.end.at)]
	}
	offsets := slices.Clone(q.writes)
	looks := slices.Clone(q.looks)
	if q.expects || q.answer.start == hastily {
		offsets = append(offsets, head) // where it waits
	}
	if i == r.plan.last() && r.plan.end.how != stays {
		looks = append(looks, len(wire))
	}
	offsets = append(offsets, looks...)
	slices.Sort(offsets)
	return split(conn, wire, offsets, func(at int) bool {
		if q.expects && at == head && !r.goesOn(i) {
			r.await("the answer to a body that is not wanted", r.answered(i))
			return false
		}
		if q.answer.start == hastily && at == head && !r.await("a hasty answer", r.answered(i)) {
			return false
		}
		return at < head || !slices.Contains(looks, at) || r.await("what the client sent", func() bool {
			return r.over || r.has(i, q.bodyAt(at-head))() || r.seen.Lost[i] > 0 && r.answered(i)()
		})
	})
}

// goesOn waits for what the app says to "Expect: 100-continue".
func (r *run) goesOn(i int) bool {
	r.await("100 Continue", r.received(i, 1, -1))
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen.Answers) > i && len(r.seen.Answers[i]) > 0 && r.seen.Answers[i][0].word(1) == "100"
}

// answers reads what the client is answered, and returns how the connection ended.
func (r *run) answers(conn net.Conn) string {
	in := reader{in: bufio.NewReader(conn), note: r.note}
	for i := 0; ; {
		m, err := in.head()
		if err != nil {
			return r.ended(err)
		}
		r.note(func() { r.seen.Answers[i] = append(r.seen.Answers[i], m) })
		method := "GET" // of an answer without a request
		if i < len(r.plan.requests) {
			method = r.plan.requests[i].method
		}
		if err := in.body(m, method); err != nil {
			return r.ended(err)
		}
		if m.status() < 200 {
			continue
		}
		i++
		r.note(func() { r.seen.Answers = append(r.seen.Answers, nil) })
	}
}

// ended names how a connection ended.
func (r *run) ended(err error) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.left:
		return "left"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed"
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	case errors.Is(err, net.ErrClosed):
		return "left"
	case errors.Is(err, errMalformed):
		return strings.ToValidUTF8(err.Error(), "?")
	default:
		return err.Error()
	}
}

package http1

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// A relaying is an answer of the app's on its way to the client.
type relaying struct {
	*transfer
	link    *link
	again   bool // the connection to the app serves others behind it
	chunked bool // it is sent in chunks
	sent    bool // all of the request had been sent before its end was
	out     []byte
}

// relay passes the answer on, and reports whether the connection goes on.
func (t *transfer) relay(l *link, a *answerHead) (goesOn bool) {
	if a.status == http.StatusSwitchingProtocols {
		if !isUpgrade(t.r.Header) || !isWebSocket(a) {
			t.disconnect(l, false)
			return t.refuse()
		}
		t.tunnel(l, a)
		return false
	}
	r := relaying{transfer: t, link: l, again: !a.closes}
	bodiless := t.r.Method == http.MethodHead || a.status == http.StatusNoContent || a.status == http.StatusNotModified
	unknown := !bodiless && a.length < 0
	r.chunked = unknown && t.r.ProtoMinor > 0
	closes := t.closes() || t.expects || unknown && !r.chunked
	t.expects = false // the client is not asked within the answer
	r.begin(a, closes, unknown)
	var err error
	switch length, chunked := a.length, a.chunked; {
	case bodiless:
		err = r.last(nil)
	case chunked:
		err = r.chunks()
	case length >= 0:
		err = r.length(length)
	default:
		r.again = false
		err = r.rest()
	}
	t.conn.scratch.out = r.out[:0]
	if err != nil {
		return t.broken(err)
	}
	if !r.sent {
		return r.afterAnswer(closes)
	}
	return !closes
}

// begin makes the head. It is sent with what comes first of the body.
func (r *relaying) begin(a *answerHead, closes, unknown bool) {
	r.handler.Head(a.status, a)
	dated := a.Get("date") != ""
	out := r.appendStatus(r.conn.scratch.out[:0], a.status, a.phrase.of(a.raw))
	out = a.appendTo(out)
	if !dated {
		out = appendDate(out)
	}
	out = r.appendKeeps(out, closes)
	switch {
	case r.chunked:
		out = append(out, "Transfer-Encoding: chunked\r\n"...)
		for _, f := range a.fields {
			if string(f.name.of(a.raw)) == "Trailer" {
				out = appendField(out, "Trailer", string(f.value.of(a.raw)))
			}
		}
	case !unknown && a.length >= 0 && a.status != http.StatusNoContent:
		out = append(strconv.AppendInt(append(out, "Content-Length: "...), a.length, 10), "\r\n"...)
	}
	r.out = append(out, "\r\n"...)
}

// errClient is why an answer ends that the client does not take.
var errClient = errors.New("the client does not take the answer")

// write sends what there is, with a part of the body behind it.
func (r *relaying) write(part []byte) error {
	if len(r.out) > 0 {
		part = append(r.out, part...)
		r.out = part[:0]
	}
	if r.conn.out.write(part, r.chunked) != nil {
		return errClient
	}
	return nil
}

// last sends the last part. The effects of the end, such as a slot that is free again, are there
// before.
func (r *relaying) last(part []byte) error {
	r.sent = r.uploaded()
	r.end(exchange.Complete)
	if r.sent {
		r.disconnect(r.link, r.again)
	}
	r.chunked = false
	return r.write(part)
}

// length passes on a body of that length.
func (r *relaying) length(left int64) error {
	in := &r.link.in
	if left > 0 && !in.some() {
		if err := r.more(r.link, maxAnswerHead); err != nil {
			return err
		}
	}
	if part := in.bytes(); left <= int64(len(part)) {
		part = part[:left]
		r.handler.Data(part)
		r.out = append(r.out, part...)
		in.skip(len(part))
		return r.last(nil)
	}
	return r.copy(left)
}

// copy passes on what follows up to a length, or to the end of the connection where that is
// negative.
func (r *relaying) copy(left int64) error {
	buffers := &r.conn.server.buffers
	buffer := buffers.get()
	defer buffers.put(buffer)
	for {
		begin, from := headroom, headroom
		if n := len(r.out); n > 0 && !r.chunked && n <= len(buffer)/2 {
			begin, from, r.out = 0, copy(buffer, r.out), r.out[:0]
		}
		most := int64(len(buffer) - from - len("\r\n"))
		if left >= 0 {
			most = min(most, left)
		}
		n, err := r.next(buffer[from:][:most], left >= 0)
		if left < 0 && errors.Is(err, io.EOF) {
			return r.over()
		} else if err != nil {
			return err
		}
		r.handler.Data(buffer[from:][:n])
		part := buffer[begin : from+n]
		if r.chunked {
			part = frameChunk(buffer, n)
		}
		if left >= 0 {
			if left -= int64(n); left == 0 {
				return r.last(part)
			}
		}
		if err := r.write(part); err != nil {
			return err
		}
	}
}

// next reads a part of the body, at first of what came with the head. Where that has filled
// the buffer of the link, more may be there, which is sent along. A body that is not known to go on
// may have ended behind it. Why nothing more can be read shows with the next part.
func (r *relaying) next(part []byte, goesOn bool) (int, error) {
	in := &r.link.in
	n := copy(part, in.bytes())
	if n == 0 {
		return r.fill(r.link, part)
	}
	in.skip(n)
	if !goesOn || in.some() || !r.link.filled {
		return n, nil
	}
	more, _ := r.link.io.TryRead(part[n:])
	return n + more, nil
}

// rest passes on what comes up to the end of the connection. The head does not wait for it.
func (r *relaying) rest() error {
	if !r.link.in.some() {
		if err := r.write(nil); err != nil {
			return err
		}
	}
	return r.copy(-1)
}

// over ends an answer that the end of the connection to the app has ended.
func (r *relaying) over() error {
	if !r.chunked {
		return r.last(nil)
	}
	return r.last(appendLast(nil, nil))
}

// chunks passes on a body in chunks.
func (r *relaying) chunks() error {
	in, d := &r.link.in, &chunks{lenient: true}
	n, used := d.decode(in.bytes())
	if n > 0 {
		data := in.bytes()[:n]
		r.handler.Data(data)
		if r.chunked {
			r.out = appendChunk(r.out, data)
		} else {
			r.out = append(r.out, data...)
		}
	}
	if in.skip(used); d.next == chunksOver {
		return r.ended(d, nil)
	}
	if err := r.write(nil); err != nil {
		return err
	}
	buffers := &r.conn.server.buffers
	buffer := buffers.get()
	defer buffers.put(buffer)
	if len(buffer) == smallBytes {
		r.out = nil // it has grown by what came with the head
	}
	for !d.malformed {
		raw := buffer[headroom : len(buffer)-len("\r\n")]
		came, err := r.fill(r.link, raw)
		if err != nil {
			return err
		}
		n, used := d.decode(raw[:came])
		part := raw[:n]
		r.handler.Data(part)
		if r.chunked {
			part = frameChunk(buffer, n)
		}
		if d.next == chunksOver {
			r.again = r.again && used == came
			return r.ended(d, part)
		}
		if err := r.write(part); err != nil {
			return err
		}
	}
	return errAnswer
}

// ended ends an answer in chunks.
func (r *relaying) ended(d *chunks, part []byte) error {
	if d.malformed {
		return errAnswer
	}
	trailer := trailer(d.header())
	r.handler.Trailer(trailer)
	if r.chunked {
		part = appendLast(part, http.Header(trailer))
	}
	return r.last(part)
}

// A trailer is that of an answer. It implements exchange.Fields.
type trailer http.Header

// Get implements exchange.Fields.
func (t trailer) Get(name string) string { return http.Header(t).Get(name) }

// Header implements exchange.Fields.
func (t trailer) Header() http.Header { return http.Header(t) }

// broken ends a request whose answer cannot be passed on to its end.
func (t *transfer) broken(err error) (goesOn bool) {
	why, over := t.ended()
	switch {
	case !over && errors.Is(err, errClient):
		why = exchange.Left
	case !over:
		why = exchange.Broken
	}
	t.end(why)
	if why == exchange.Broken || why == exchange.Cut || why == exchange.Malformed {
		t.stopUpload()
		t.unwatch()
		t.conn.closeWrite()
		t.conn.linger()
	}
	return false
}

package http1

import (
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
	"github.com/weir-dev/weir/internal/sidecar/proxy/socket"
)

// forward sends the request to the app and passes the answer on. It reports whether the connection
// goes on.
func (t *transfer) forward() (goesOn bool) {
	if !t.handler.Forward(func() { t.cancel(exchange.Cut) }) {
		t.cancel(exchange.Cut)
		return t.refuse()
	}
	t.expects = t.r.ProtoMinor > 0 && !t.body.whole && t.r.Header["Expect"] != nil
	out := t.appendHead(t.conn.scratch.out[:0])
	if !t.expects {
		var err error
		if out, err = t.take(out); err != nil {
			t.conn.malformed()
			t.cancel(exchange.Malformed)
			return t.refuse()
		}
	}
	t.conn.scratch.out = out
	for fresh := false; ; {
		l, err := t.connect(fresh)
		if err != nil {
			return t.refuse()
		}
		a, sent, err := t.exchange(l, out)
		if err == nil {
			return t.relay(l, a)
		}
		again := l.used && !l.spoken && t.again(sent)
		fresh = sent
		t.disconnect(l, false)
		if !again {
			return t.refuse()
		}
		t.tried = t.tried || sent
		if u := t.upload; u != nil {
			out = append(out, u.kept...)
			t.conn.scratch.out = out
			t.mu.Lock()
			t.upload = nil
			t.mu.Unlock()
		}
	}
}

// again reports whether a request that was lost to a connection that served others before may be
// sent over another one: nothing of it was written, or it does no harm twice, and in any case all
// of its body that was read is kept.
func (t *transfer) again(sent bool) bool {
	if _, over := t.ended(); over || sent && (t.tried || !t.repeats()) {
		return false
	}
	if t.upload == nil {
		return !sent || t.body.keeps()
	}
	return sent && t.upload.await()
}

// repeats reports whether the request does no harm twice.
func (t *transfer) repeats() bool {
	return t.r.Method == http.MethodPut || t.r.Method == http.MethodDelete || exchange.Repeats(t.r)
}

// exchange writes the request and waits for the head of the answer. sent says that something of the
// request was written.
func (t *transfer) exchange(l *link, out []byte) (a *answerHead, sent bool, err error) {
	t.slow = false
	if err := l.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, false, err //nolint:wrapcheck // of the connection
	}
	if sent, err = t.put(l, out); err != nil {
		return nil, sent, err
	}
	for {
		if a, err = t.readAnswer(l); err != nil {
			return nil, true, err
		}
		switch {
		case a.status == http.StatusContinue && t.expects:
			err = t.ask(l, t.appendInterim(nil, a))
		case a.status == http.StatusContinue && t.r.Header["Expect"] != nil, a.status < http.StatusOK && t.r.ProtoMinor == 0:
		case a.status >= http.StatusOK, a.status == http.StatusSwitchingProtocols:
			return a, true, nil
		default:
			err = t.conn.out.interim(t.appendInterim(nil, a))
		}
		if err != nil {
			t.cancel(exchange.Left)
			return nil, true, err
		}
	}
}

// put writes what there is of the request, and reports whether something of it was written. It
// may read the beginning of the answer. Over a connection that was idle, nothing is written where
// the app has closed it, or has spoken: that would be taken for the answer.
func (t *transfer) put(l *link, out []byte) (sent bool, err error) {
	var n int
	switch follows := !t.body.whole && !t.expects; {
	case l.used && !follows:
		var came int
		n, came, err = l.io.Ask(out, l.in.buf)
		l.in.to, l.spoken, l.filled = came, came > 0, came == len(l.in.buf)
		if n == len(out) && errors.Is(err, os.ErrDeadlineExceeded) {
			return true, t.late(l)
		}
	case l.used && !l.io.Silent():
		return false, socket.ErrSpoken
	}
	if n < len(out) && err == nil {
		var rest int
		rest, err = l.io.Write(out[n:])
		n += rest
	}
	if err == nil && !t.body.whole && !t.expects {
		t.send(l)
	}
	return n > 0, err //nolint:wrapcheck // of the connection
}

// appendHead appends the head of the request as the app gets it.
func (t *transfer) appendHead(to []byte) []byte {
	r, h := t.r, t.r.Header
	to = append(append(append(append(to, r.Method...), ' '), t.target...), " HTTP/1.1\r\n"...)
	host := r.Host
	if host == "" {
		host = t.conn.server.cfg.Host
	}
	to = appendField(to, "Host", host)
	passed := 0
	for _, f := range t.conn.scratch.head.fields {
		if !f.first {
			continue
		}
		name := f.name.in(t.text)
		values, ok := h[name]
		if !ok {
			continue
		}
		if passed++; !ofConnection(name) {
			to = appendFields(to, name, values)
		}
	}
	if passed < len(h) {
		to = t.appendAdded(to, passed)
	}
	if isUpgrade(h) {
		to = append(to, "Connection: Upgrade\r\n"...)
		to = appendFields(to, "Upgrade", h["Upgrade"])
	}
	switch {
	case t.body.chunks != nil:
		to = append(to, "Transfer-Encoding: chunked\r\n"...)
		if len(r.Trailer) > 0 {
			to = appendField(to, "Trailer", namesOf(r.Trailer))
		}
	case t.body.left > 0, r.Method == http.MethodPost, r.Method == http.MethodPut, r.Method == http.MethodPatch:
		to = append(strconv.AppendUint(append(to, "Content-Length: "...), t.body.left, 10), "\r\n"...)
	}
	return append(to, "\r\n"...)
}

// appendAdded appends the fields that the client has not sent. Those that it has are that many of
// the header.
func (t *transfer) appendAdded(to []byte, sent int) []byte {
	const hops = "X-Forwarded-For"
	h := t.r.Header
	if values, ok := h[hops]; ok && sent == len(h)-1 && !t.hasSent(hops) {
		return appendFields(to, hops, values)
	}
	added := http.Header{}
	for name, values := range h {
		if !t.hasSent(name) {
			added[name] = values
		}
	}
	return appendSorted(to, added)
}

func (t *transfer) hasSent(name string) bool {
	for _, f := range t.conn.scratch.head.fields {
		if f.name.in(t.text) == name {
			return true
		}
	}
	return false
}

// isUpgrade reports whether a request asks for another protocol; those that it may not ask for have
// been taken off.
func isUpgrade(h http.Header) bool {
	if h["Upgrade"] == nil {
		return false
	}
	return hasToken(h["Connection"], "upgrade")
}

// hasToken reports whether one of some lists has an option, which is in lower case.
func hasToken(lists []string, option string) bool {
	for _, list := range lists {
		for one := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(strings.Trim(one, " \t"), option) {
				return true
			}
		}
	}
	return false
}

// ofConnection reports whether a field is written apart, or ends at the sidecar.
func ofConnection(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Upgrade", "Http2-Settings", "Content-Length",
		"Transfer-Encoding", "Trailer":
		return true
	}
	return false
}

package http1

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// maxRest bounds the rest of a body that is read so that the connection of a refused request can
// be kept.
const maxRest = 256 << 10

// answer sends an answer of the sidecar's own, and reads the rest of the body. It reports whether
// the connection goes on.
func (t *transfer) answer(w *exchange.Recorder) (goesOn bool) {
	c, h := t.conn, w.Header()
	w.WriteHeader(http.StatusOK)
	asks := !t.body.whole && t.r.ProtoMinor > 0 && t.r.Header["Expect"] != nil
	closes := t.closes() || asks || h["Connection"] != nil || t.r.ContentLength > maxRest
	delete(h, "Connection")
	h["Content-Length"] = []string{strconv.Itoa(len(w.Body))}
	out := t.appendStatus(c.scratch.out[:0], w.Status, []byte(http.StatusText(w.Status)))
	out = appendSorted(out, h)
	if h["Date"] == nil {
		out = appendDate(out)
	}
	out = append(t.appendKeeps(out, closes), "\r\n"...)
	if t.r.Method != http.MethodHead {
		out = append(out, w.Body...)
	}
	c.scratch.out = out
	if c.out.write(out, false) != nil {
		return false
	}
	if t.body.whole {
		return !closes
	}
	until := time.Now().Add(restTime)
	if !closes && t.drop(until, maxRest) {
		return true
	}
	c.closeWrite()
	t.drop(until, 1<<62)
	return false
}

// refuse answers a request that the app has not answered, or that was ended before. It reports
// whether the connection goes on.
func (t *transfer) refuse() (goesOn bool) {
	why, over := t.ended()
	if !over {
		why = exchange.NoAnswer
	}
	sending := t.upload != nil && !t.upload.whole.Load()
	t.stopUpload()
	t.unwatch()
	if why == exchange.Left || why == aborted {
		t.end(why)
		return false
	}
	var w exchange.Recorder
	t.handler.Refuse(&w, why)
	t.end(why)
	if sending || why == exchange.Malformed {
		w.Header().Set("Connection", "close")
	}
	if why != exchange.Malformed {
		return t.answer(&w)
	}
	t.body.whole = true // as far as it can be read
	t.answer(&w)
	t.conn.closeWrite()
	t.conn.linger()
	return false
}

// closes reports whether the connection ends with the answer.
func (t *transfer) closes() bool {
	s, options := t.conn.server, t.r.Header["Connection"]
	switch {
	case s.closing.Load(), s.leaving.Load() && t.r.Header["Upgrade"] == nil, hasToken(options, "close"):
		return true
	}
	return t.r.ProtoMinor == 0 && !hasToken(options, "keep-alive")
}

// appendStatus appends the first line of an answer.
func (t *transfer) appendStatus(to []byte, status int, phrase []byte) []byte {
	version := "HTTP/1.1 "
	if t.r.ProtoMinor == 0 {
		version = "HTTP/1.0 "
	}
	to = strconv.AppendInt(append(to, version...), int64(status), 10)
	return append(append(append(to, ' '), phrase...), "\r\n"...)
}

// appendKeeps appends whether the connection goes on, where that is to be said.
func (t *transfer) appendKeeps(to []byte, closes bool) []byte {
	switch {
	case closes:
		return append(to, "Connection: close\r\n"...)
	case t.r.ProtoMinor == 0:
		return append(to, "Connection: keep-alive\r\n"...)
	}
	return to
}

// appendInterim appends an answer that another one follows.
func (t *transfer) appendInterim(to []byte, a *answerHead) []byte {
	to = t.appendStatus(to, a.status, a.phrase.of(a.raw))
	return append(a.appendTo(to), "\r\n"...)
}

// appendTo appends the fields of the answer that do not end at the sidecar.
func (a *answerHead) appendTo(to []byte) []byte {
	if a.header != nil {
		h := a.header
		for name := range h {
			if ofConnection(name) || a.names([]byte(name)) {
				delete(h, name)
			}
		}
		return appendSorted(to, h)
	}
	for _, f := range a.fields {
		name := f.name.of(a.raw)
		if ofConnection(string(name)) || a.names(name) {
			continue
		}
		to = append(append(to, name...), ": "...)
		to = append(append(to, f.value.of(a.raw)...), "\r\n"...)
	}
	return to
}

// names reports whether Connection names a field.
func (a *answerHead) names(name []byte) bool {
	for _, value := range a.options {
		for one := range bytes.SplitSeq(value.of(a.raw), []byte(",")) {
			if bytes.EqualFold(bytes.Trim(one, " \t"), name) {
				return true
			}
		}
	}
	return false
}

// namesOf returns the names of a header, as a list.
func namesOf(h http.Header) string { return strings.Join(slices.Sorted(maps.Keys(h)), ",") }

// A date is a second and how it is written.
type date struct {
	unix int64
	line string
}

var today atomic.Pointer[date]

// appendDate appends the time.
func appendDate(to []byte) []byte {
	now := time.Now()
	d := today.Load()
	if d == nil || d.unix != now.Unix() {
		d = &date{unix: now.Unix(), line: "Date: " + now.UTC().Format(http.TimeFormat) + "\r\n"}
		today.Store(d)
	}
	return append(to, d.line...)
}

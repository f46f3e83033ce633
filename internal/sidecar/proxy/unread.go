package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
)

// Bounds of reading a body after its request was refused over HTTP/1.1. net/http would
// read 256 KiB before it sends the answer, or after, and wait for them without end.
const (
	maxRest  = 256 << 10       // bytes; with more to come the connection is not kept
	restTime = 5 * time.Second // for all that is left
)

// unread reports whether the client of r may have more of its body to send. Over HTTP/2
// a body that is not read holds up no other request.
func unread(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.Body != nil && r.Body != http.NoBody
}

// reject answers r, whose body was not read to its end, with p. The answer is sent when the
// handler returns, or discard is called.
func reject(w http.ResponseWriter, r *http.Request, p problem.Problem) {
	if unread(r) {
		_ = http.NewResponseController(w).EnableFullDuplex() // do not wait for the body
		if r.ContentLength > maxRest {
			w.Header().Set("Connection", "close")
		}
		w.Header().Set("Content-Length", "0") // of gRPC, which has no body; others set theirs
	}
	p.Write(w, r)
}

// discard sends the answer of reject, and reads the rest of the body so that the connection
// may be used again. A connection that may not be is closed once the client had time to read the
// answer: closed with something unread it is reset, and the answer is lost.
func discard(w http.ResponseWriter, r *http.Request) {
	if !unread(r) {
		return
	}
	answer := http.NewResponseController(w)
	_ = answer.Flush() // an error ends the reads as well
	until := time.Now().Add(restTime)
	_ = answer.SetReadDeadline(until)
	cut := context.AfterFunc(r.Context(), func() { _ = answer.SetReadDeadline(time.Now()) })
	defer cut()
	closes := closesAfter(w, r)
	var err error
	if !closes {
		_, err = io.CopyN(io.Discard, r.Body, maxRest+1)
	}
	if err == nil { // the connection ends
		framing.CloseWrite(r.Context())
		_, err = io.Copy(io.Discard, r.Body)
		closes = closes && err == nil
	}
	switch {
	case closes, errors.Is(err, io.EOF):
	case errors.Is(err, http.ErrBodyReadAfterClose) && r.Context().Err() == nil && time.Now().Before(until):
		// The way to the app closed it. net/http has read to its end, or closes the connection.
	default:
		breakOff() // net/http would take what comes later for the next request
	}
}

// closesAfter reports whether the answer says that the connection is closed. net/http says
// so to a client that asked whether to send its body.
func closesAfter(w http.ResponseWriter, r *http.Request) bool {
	return w.Header().Get("Connection") == "close" || r.Close || r.ProtoMinor > 0 && r.Header["Expect"] != nil
}

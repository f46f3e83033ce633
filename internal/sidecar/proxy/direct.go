package proxy

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
)

// A direct is the way to the app over HTTP/1.1. An http.Transport hands each request to a
// goroutine that writes it, and gets the answer from another that reads: an answer may come
// while the body is still being sent. A request without a body needs neither. Its own
// goroutine writes it and reads the answer, so that only the app's answer wakes a
// goroutine. Wake-ups are most of what a proxy costs.
type direct struct {
	target string // host:port of the app
	dial   dial
	idle   idleLinks
	rest   transport // for requests with a body, and those that may become tunnels
}

// A transport is what is used of an http.Transport.
type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

func newDirect(target string) *direct {
	return &direct{target: target, dial: toApp.DialContext, rest: newTransport()}
}

// RoundTrip implements http.RoundTripper.
func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil || r.Header["Upgrade"] != nil {
		return d.sendWhole(r)
	}
	head := heads.Get().(*bytes.Buffer) //nolint:forcetypeassert // nothing else is in there
	defer heads.Put(head)
	head.Reset()
	if err := r.Write(head); err != nil {
		return nil, err //nolint:wrapcheck // as of an http.Transport
	}
	fresh := false
	for ctx := r.Context(); ; {
		l, err := d.send(ctx, head.Bytes(), fresh)
		switch {
		case err == nil:
			return l.receive(r)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case l == nil || !l.used:
			return nil, err
		case errors.Is(err, errNothingSent):
		case replayable(r):
			fresh = true // it is sent again once
		default:
			return nil, err
		}
	}
}

// sendWhole sends a request by the other way, and again as long as it was lost to a
// connection that the app has closed, and all that was read of its body is kept. One that the
// app may have begun is sent again once.
func (d *direct) sendWhole(r *http.Request) (*http.Response, error) {
	for again := replayable(r); ; {
		s := sending{again: again}
		s.body, _ = r.Body.(*body)
		res, err := d.rest.RoundTrip(s.of(r))
		s.ended()
		if err == nil || !s.lost() || r.GetBody == nil || r.Context().Err() != nil {
			return res, err //nolint:wrapcheck // of the other way
		}
		if _, broken := errors.AsType[*bodyError](err); broken {
			return nil, err //nolint:wrapcheck // of the other way
		}
		again = again && !s.begun()
		body, lost := r.GetBody()
		if lost != nil {
			return nil, err //nolint:wrapcheck // of the other way
		}
		r = r.WithContext(r.Context()) // a sender does not change a request
		r.Body = body
	}
}

// heads are the buffers that requests are written through. They stay small: a client's
// header is bounded, by less than a socket takes without the app reading (maxHeader of the
// servers). So nobody waits for an app that answers without having read all.
var heads = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// send sends a request over an idle connection or a new one, which it returns when it is
// open, and waits for the answer to begin.
func (d *direct) send(ctx context.Context, head []byte, fresh bool) (*link, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var l *link
	if !fresh {
		l = d.idle.take()
	}
	if l == nil {
		conn, err := d.dial(ctx, "tcp", d.target)
		if err != nil {
			return nil, err
		}
		l = newLink(conn, &d.idle)
	}
	return l, l.send(ctx, head)
}

// replayable reports whether a request may be sent again when a connection that served
// others before ended without an answer: when it does no harm twice by its method (RFC 9110,
// section 9.2.2), or when its sender says so.
func replayable(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return r.Header["Idempotency-Key"] != nil || r.Header["X-Idempotency-Key"] != nil
}

// CloseIdleConnections closes the connections that are idle, and those in use as they
// become so.
func (d *direct) CloseIdleConnections() {
	d.idle.close()
	d.rest.CloseIdleConnections()
}

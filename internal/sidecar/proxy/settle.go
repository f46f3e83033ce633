package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
)

// admissionKey is the key of a request's admission in its context.
type admissionKey struct{}

// admitted returns r with its admission, which settle finds when the app answers.
func admitted(r *http.Request, a *enforce.Admission) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), admissionKey{}, a))
}

// settle charges a request what its response says it cost. What the header does not
// say a trailer may: gRPC servers know the cost of a stream at its end.
func settle(res *http.Response) error {
	if res.StatusCode == http.StatusSwitchingProtocols {
		if !strings.EqualFold(res.Request.Header.Get("Upgrade"), websocket) || !strings.EqualFold(res.Header.Get("Upgrade"), websocket) {
			return errors.New("the app switches to a protocol that it was not asked for")
		}
		framing.Tunnel(res.Request.Context())
	}
	a, ok := res.Request.Context().Value(admissionKey{}).(*enforce.Admission)
	if !ok || a.Settle(res.Header) {
		return nil
	}
	// A body that is a tunnel has no trailer, and is more than a reader.
	if announced := len(res.Trailer) > 0 || res.ProtoMajor == 2; announced && res.StatusCode != http.StatusSwitchingProtocols {
		res.Body = &trailing{ReadCloser: res.Body, response: res, admission: a}
	}
	return nil
}

// trailing is a body whose end settles the request.
type trailing struct {
	io.ReadCloser
	response  *http.Response
	admission *enforce.Admission
}

// Read reads the body. The trailer is known once it is read to its end.
func (t *trailing) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		t.admission.Settle(t.response.Trailer)
	}
	return n, err
}

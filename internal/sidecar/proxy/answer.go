package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/quota"
)

// verdictKey is the key of a request's verdict in its context.
type verdictKey struct{}

// admitted returns r with its verdict, which answer finds when the app does.
func admitted(r *http.Request, v enforce.Verdict) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), verdictKey{}, &v))
}

// answer completes the app's answer: it charges what the answer says the request cost,
// and adds what is left.
func answer(res *http.Response) error {
	if b, ok := res.Request.Body.(*body); ok {
		b.settle()
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		if !strings.EqualFold(res.Request.Header.Get("Upgrade"), websocket) || !strings.EqualFold(res.Header.Get("Upgrade"), websocket) {
			return errors.New("the app switches to a protocol that it was not asked for")
		}
	}
	v, ok := res.Request.Context().Value(verdictKey{}).(*enforce.Verdict)
	if !ok {
		return nil
	}
	if v.Admission != nil {
		settle(res, v.Admission)
	}
	if v.Shown != nil {
		tell(res.Header, *v.Shown)
	}
	return nil
}

// tell adds what is left of a limit to the app's own fields. Where a field is one value,
// the app's stays.
func tell(h http.Header, s enforce.QuotaState) {
	for _, f := range quota.Fields(s) {
		switch canonical := http.CanonicalHeaderKey(f.Name); {
		case strings.HasPrefix(canonical, "X-"):
			if _, told := h[canonical]; !told {
				h[f.Name] = []string{f.Value}
			}
		default: // a list
			h[f.Name] = append(h[canonical], f.Value)
			delete(h, canonical)
		}
	}
}

// settle charges a request what its response says it cost. A trailer may say what the
// header does not: gRPC servers know the cost of a stream at its end.
func settle(res *http.Response, a *enforce.Admission) {
	if a.Settle(res.Header) {
		return
	}
	// A body that is a tunnel has no trailer, and is more than a reader.
	if len(res.Trailer) > 0 && res.StatusCode != http.StatusSwitchingProtocols {
		res.Body = &trailing{ReadCloser: res.Body, response: res, admission: a}
	}
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

// leaveUntyped keeps net/http from guessing a type for an answer of the app's that names
// none: only the app knows what it sends.
func leaveUntyped(h http.Header, status int) {
	if _, named := h["Content-Type"]; !named && status >= http.StatusOK {
		h["Content-Type"] = nil
	}
}

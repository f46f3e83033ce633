package proxy

import (
	"encoding/binary"
	"net"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
	"github.com/weir-dev/weir/internal/sidecar/quota"
	"github.com/weir-dev/weir/pkg/concurrency"
)

// Enter implements exchange.Handler.
func (p *Proxy) Enter(w http.ResponseWriter, r *http.Request) exchange.Exchange {
	if wrong := malformed(r, p.cfg.Underscores); wrong != nil {
		p.cfg.Metrics.Malformed.Inc()
		if r.ProtoMajor == 1 { // of HTTP/2 it would become GOAWAY, to all clients that share the connection
			w.Header().Set("Connection", "close")
		}
		p.answer(w, r, wrong, "")
		return nil
	}
	p.clean(r)
	slot, refusal, err := p.enter(r)
	switch {
	case err != nil:
		p.fail(w, r, err)
		return nil
	case refusal != nil:
		p.refuseEntry(w, r, refusal)
		return nil
	}
	passes := false
	defer func() {
		if !passes {
			slot.Release(concurrency.Ignored)
		}
	}()
	verdict, err := p.judge(r)
	if verdict.Admission != nil && err == nil {
		err = verdict.Admission.Wait(r.Context())
	}
	switch {
	case err != nil:
		p.fail(w, r, err)
		return nil
	case !verdict.Allowed:
		p.refuse(w, r, verdict.Refusal)
		return nil
	}
	passes = true
	c := &crossing{
		proxy: p, slot: slot, admission: verdict.Admission, shown: verdict.Shown, request: r,
		grpc: isGRPC(r), hurried: r.Header.Get("Grpc-Timeout") != "",
	}
	address(r)
	return c
}

// ownPrefix begins the names of headers that only we set.
const ownPrefix = "X-Weir-"

// websocket is the one protocol that a connection may become.
const websocket = "websocket"

// sanitize removes from a request what its sender has no say in: our own headers,
// and a change of protocol other than to WebSocket. A connection that the app
// switched to h2c would carry further requests past every limit.
func sanitize(h http.Header) {
	withoutOwn(h)
	if upgrade := h["Upgrade"]; len(upgrade) > 0 && (len(upgrade) > 1 || !strings.EqualFold(upgrade[0], websocket)) {
		delete(h, "Upgrade")
		delete(h, "Http2-Settings")
	}
}

// withoutOwn removes our own headers.
func withoutOwn(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, ownPrefix) {
			delete(h, name)
		}
	}
}

// clean removes from a request what does not pass.
func (p *Proxy) clean(r *http.Request) {
	sanitize(r.Header)
	if !p.cfg.Underscores.passes(r) {
		p.cfg.Metrics.Dropped.Add(float64(withoutUnderscores(r.Header)))
		withoutUnderscores(r.Trailer) // that are announced
	}
}

// Trailer implements exchange.Handler.
func (p *Proxy) Trailer(r *http.Request, trailer http.Header) {
	withoutOwn(trailer)
	if !p.cfg.Underscores.passes(r) {
		withoutUnderscores(trailer)
	}
}

// address adds the peer's address, which the app does not see itself, and removes the fields of
// the connection.
func address(r *http.Request) {
	delete(r.Header, "Proxy-Authenticate")
	delete(r.Header, "Proxy-Authorization")
	if te, ok := r.Header["Te"]; ok {
		if delete(r.Header, "Te"); httpguts.HeaderValuesContainsToken(te, "trailers") {
			r.Header["Te"] = []string{"trailers"}
		}
	}
	if hops := hopsOf(r); len(hops) > 0 {
		r.Header["X-Forwarded-For"] = []string{strings.Join(hops, ", ")}
	}
}

// hopsOf returns the addresses that a request came from.
func hopsOf(r *http.Request) []string {
	hops := r.Header["X-Forwarded-For"]
	if peer, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		hops = append(slices.Clip(hops), peer)
	}
	return hops
}

// A crossing is a request that passes, up to the end of its answer.
type crossing struct {
	proxy     *Proxy
	slot      pools.Slot
	admission *enforce.Admission // nil: nothing is left to do
	shown     *enforce.QuotaState
	request   *http.Request
	grpc      bool
	hurried   bool // by a deadline of the client's

	over     chan struct{} // closed at the end; nil where nothing waits for it
	status   int
	kind     string // Content-Type
	code     int    // of gRPC
	messages messages
}

// Forward implements exchange.Exchange.
func (c *crossing) Forward(cut func()) bool {
	if !c.slot.Held() {
		return true
	}
	over := make(chan struct{})
	c.over = over
	for held := &c.slot; held != nil; held = held.Next() {
		fenced := held.Fenced()
		if fenced == nil {
			continue
		}
		select {
		case <-fenced:
			return false // while the request waited for its limits
		default:
		}
		go func() {
			select {
			case <-fenced:
				cut()
			case <-over:
			}
		}()
	}
	c.slot.Forward()
	return true
}

// Head implements exchange.Exchange: it charges what the answer says the request cost, and adds what
// is left.
func (c *crossing) Head(status int, fields exchange.Fields) {
	if c.slot.Held() {
		c.status, c.kind, c.code = status, fields.Get("content-type"), problem.GRPCStatus(fields.Get("grpc-status"))
	}
	if c.admission != nil && c.admission.Settle(fields.Header()) {
		c.admission = nil
	}
	if c.shown != nil {
		addQuota(fields.Header(), *c.shown)
	}
}

// Data implements exchange.Exchange.
func (c *crossing) Data(p []byte) {
	if c.grpc && c.slot.Held() {
		c.messages.see(p)
	}
}

// Trailer implements exchange.Exchange.
func (c *crossing) Trailer(fields exchange.Fields) {
	if c.admission != nil {
		c.admission.Settle(fields.Header())
	}
	if c.slot.Held() && c.code < 0 {
		c.code = problem.GRPCStatus(fields.Get("grpc-status"))
	}
}

// Refuse implements exchange.Exchange.
func (c *crossing) Refuse(w http.ResponseWriter, why exchange.Ending) {
	switch why {
	case exchange.Malformed:
		c.proxy.answer(w, c.request, &badBody, "")
	case exchange.Cut:
		c.proxy.refuseEntry(w, c.request, c.slot.Refusal())
	default:
		c.proxy.answer(w, c.request, &noAnswer, "")
	}
}

// End implements exchange.Exchange.
func (c *crossing) End(why exchange.Ending) {
	if c.over != nil {
		close(c.over)
	}
	if c.slot.Held() {
		c.slot.Release(c.outcome(why))
	}
}

// outcome returns what the request shows about the load of the app. Its latency is that
// of the whole answer. How long a tunnel or a stream is open is up to its two
// ends, so it shows nothing. Neither does a request that we or the client ended. A gRPC answer of one
// message is not a stream, and a deadline that the client set says nothing of the app.
func (c *crossing) outcome(why exchange.Ending) concurrency.Outcome {
	streams := c.messages.seen > 1 || strings.HasPrefix(c.kind, "text/event-stream")
	switch {
	case why == exchange.NoAnswer:
		return concurrency.Dropped
	case why != exchange.Complete && why != exchange.Broken, streams, c.status == http.StatusSwitchingProtocols:
		return concurrency.Ignored
	case why == exchange.Broken:
		return concurrency.Dropped
	case c.grpc && c.code == problem.GRPCDeadlineExceeded && c.hurried:
		return concurrency.Ignored
	case c.grpc && (c.code == problem.GRPCUnavailable || c.code == problem.GRPCDeadlineExceeded), busy(c.status):
		return concurrency.Dropped
	}
	return concurrency.Served
}

// addQuota adds what is left of a limit to the app's own fields. Where a field is one value,
// the app's stays.
func addQuota(h http.Header, s enforce.QuotaState) {
	for _, f := range quota.Fields(s) {
		switch canonical := http.CanonicalHeaderKey(f.Name); {
		case strings.HasPrefix(canonical, "X-"):
			if _, has := h[canonical]; !has {
				h[f.Name] = []string{f.Value}
			}
		default: // a list
			h[f.Name] = append(h[canonical], f.Value)
			delete(h, canonical)
		}
	}
}

// busy reports whether the app says that it could not do the work, or not in time.
func busy(status int) bool {
	return status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// messages counts the messages of a gRPC body. Each begins with a flag and its length.
type messages struct {
	seen   int
	prefix [5]byte
	read   int    // of the prefix
	left   uint32 // of the message
}

func (m *messages) see(p []byte) {
	for len(p) > 0 {
		if m.left > 0 {
			n := min(uint64(m.left), uint64(len(p)))
			m.left -= uint32(n)
			p = p[n:]
			continue
		}
		n := copy(m.prefix[m.read:], p)
		m.read += n
		p = p[n:]
		if m.read == len(m.prefix) {
			m.seen++
			m.read, m.left = 0, binary.BigEndian.Uint32(m.prefix[1:])
		}
	}
}

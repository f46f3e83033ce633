package proxy

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/internal/sidecar/proxy/frames"
	"github.com/weir-dev/weir/pkg/concurrency"
)

// NewHTTP2 returns what serves connections of HTTP/2 in front of the app of p. It asks h, which is
// p or stands in front of it.
func NewHTTP2(p *Proxy, h frames.Handler) *frames.Server {
	return frames.NewServer(frames.Config{
		Handler:           h,
		Dial:              func(ctx context.Context) (net.Conn, error) { return toApp.DialContext(ctx, "tcp", p.cfg.Target) },
		NoMemory:          RefuseForMemory,
		HeaderBytes:       maxStreamHead,
		AnswerHeaderBytes: maxAnswerHead,
		Log:               p.cfg.Log,
	})
}

// maxStreamHead bounds the header of a request over HTTP/2: 32 KiB, and what the protocol adds to
// that for ten fields, as net/http has it.
const maxStreamHead = 32<<10 + 10*32

// Enter implements frames.Handler.
func (p *Proxy) Enter(w http.ResponseWriter, r *http.Request) frames.Exchange {
	if wrong := malformed(r, p.cfg.Underscores); wrong != nil {
		p.cfg.Metrics.Malformed.Inc()
		reject(w, r, *wrong)
		return nil
	}
	p.clean(r)
	slot, refusal, err := p.enter(r)
	switch {
	case err != nil:
		p.fail(w, r, err)
		return nil
	case refusal != nil:
		refuseEntry(w, r, refusal)
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
		refuse(w, r, verdict.Refusal)
		return nil
	}
	passes = true
	c := &crossing{
		slot: slot, admission: verdict.Admission, shown: verdict.Shown, request: r,
		grpc: problem.IsGRPC(r), hurried: r.Header.Get("Grpc-Timeout") != "",
	}
	address(r)
	return c
}

// clean removes from a request what does not pass.
func (p *Proxy) clean(r *http.Request) {
	sanitize(r.Header)
	if !p.cfg.Underscores.passes(r) {
		p.cfg.Metrics.Dropped.Add(float64(withoutUnderscores(r.Header)))
		withoutUnderscores(r.Trailer) // that are announced
	}
}

// Trailer implements frames.Handler.
func (p *Proxy) Trailer(r *http.Request, trailer http.Header) {
	withoutOwn(trailer)
	if !p.cfg.Underscores.passes(r) {
		withoutUnderscores(trailer)
	}
}

// address adds the peer's address, which the app does not see itself, and removes the fields of
// the connection.
func address(r *http.Request) {
	for _, name := range []string{"Proxy-Authenticate", "Proxy-Authorization"} {
		delete(r.Header, name)
	}
	if te := r.Header["Te"]; len(te) > 0 && te[0] != "trailers" {
		delete(r.Header, "Te")
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

// A crossing is a request over HTTP/2 that passes, up to the end of its answer.
type crossing struct {
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

// Forward implements frames.Exchange.
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

// Head implements frames.Exchange: it charges what the answer says the request cost, and adds what
// is left.
func (c *crossing) Head(status int, fields *frames.Fields) {
	if c.slot.Held() {
		c.status, c.kind, c.code = status, fields.Get("content-type"), problem.GRPCStatus(fields.Get("grpc-status"))
	}
	if c.admission != nil && c.admission.Settle(fields.Header()) {
		c.admission = nil
	}
	if c.shown != nil {
		tell(fields.Header(), *c.shown)
	}
}

// Data implements frames.Exchange.
func (c *crossing) Data(p []byte) {
	if c.grpc && c.slot.Held() {
		c.messages.see(p)
	}
}

// Trailer implements frames.Exchange.
func (c *crossing) Trailer(fields *frames.Fields) {
	if c.admission != nil {
		c.admission.Settle(fields.Header())
	}
	if c.slot.Held() && c.code < 0 {
		c.code = problem.GRPCStatus(fields.Get("grpc-status"))
	}
}

// Refuse implements frames.Exchange.
func (c *crossing) Refuse(w http.ResponseWriter, why frames.Ending) {
	switch why {
	case frames.Malformed:
		reject(w, c.request, problem.New(http.StatusBadRequest, "the body of the request is malformed"))
	case frames.Cut:
		refuseEntry(w, c.request, c.slot.Refusal())
	default:
		reject(w, c.request, noAnswer)
	}
}

// End implements frames.Exchange.
func (c *crossing) End(why frames.Ending) {
	if c.over != nil {
		close(c.over)
	}
	if c.slot.Held() {
		c.slot.Release(c.outcome(why))
	}
}

// outcome returns what the request shows about the load of the app; see flight. A gRPC answer of one
// message is not a stream, and a deadline that the client set says nothing of the app.
func (c *crossing) outcome(why frames.Ending) concurrency.Outcome {
	streams := c.messages.seen > 1 || strings.HasPrefix(c.kind, "text/event-stream")
	switch {
	case why == frames.NoAnswer:
		return concurrency.Dropped
	case why != frames.Complete && why != frames.Broken, streams:
		return concurrency.Ignored
	case why == frames.Broken:
		return concurrency.Dropped
	case c.grpc && c.code == problem.GRPCDeadlineExceeded && c.hurried:
		return concurrency.Ignored
	case c.grpc && (c.code == problem.GRPCUnavailable || c.code == problem.GRPCDeadlineExceeded), busy(c.status):
		return concurrency.Dropped
	}
	return concurrency.Served
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

package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy/revision"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// Identity is the identity that the sidecar claims. The token has to agree.
type Identity struct {
	Namespace, Pod, PodUID string
	BootNonce              string // random, new with every start of the process
	Version                string // of the build
	// Capture says how requests come to the sidecar, as WEIR_CAPTURE does, and Mode what
	// it does, as WEIR_MODE does. Values that have no word in the protocol are not sent
	// to the controller.
	Capture, Mode string
}

// A Handler does what the controller asks for. Its methods are called one at a
// time, except Report and Promise.
type Handler interface {
	// InForce returns which policies are in force, an empty version for none, and what
	// SetHolders was called with.
	InForce() (version string, holders []*fleetpb.Holders_Count)
	// Apply puts an encoded snapshot in force, with the credentials of its stores. On
	// an error the one before stays, and the error is reported to the controller.
	Apply(version string, snapshot []byte, secrets []*fleetpb.Secret) error
	SetHolders(namespace, policy string, n int64)
	// Reached notes what the controller knows of the clock of a store's server, which is
	// named by policy.Store.Server.
	Reached(server string, by store.Reached)
	// Promise has no window of the controller's store begin on a local share that starts
	// before the instant until of its clock, which showed now. It returns which one, if any,
	// was begun last, and false when nothing is promised. It does not block.
	Promise(now, until limiter.Instant) (begun limiter.Instant, ok bool)
	Accountant
}

// An Editor is a Handler that can be sent what changed alone. Others are sent all of every version.
type Editor interface {
	// Edit puts in force what the edit makes of the version that is, or leaves all as it is. The
	// credentials of its stores are those of that version, unless they are renewed. An error that
	// wraps revision.ErrBase asks the controller for all of the version; others are reported to it.
	Edit(e revision.Edit, secrets []*fleetpb.Secret, renewed bool) error
}

// An Accountant says what was let through.
type Accountant interface {
	// Report returns what was not yet reported in the session.
	Report(now time.Time, session uint64) *fleetpb.Report
	Audit(q *fleetpb.AuditQuery) *fleetpb.AuditReply
}

// Config is what a Client is made of.
type Config struct {
	Address    string // host:port where the leader is found
	ServerName string // in the server's certificate
	CABundle   []byte // PEM
	TokenFile  string // read again for every stream
	Identity   Identity
	Log        *slog.Logger
	// Dial connects to an address, host:port. Nil: over TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// A Client keeps the stream to the leading controller open, and is the
// Controller store while it is.
type Client struct {
	cfg    Config
	dial   dialer
	outage outage
	began  time.Time   // local instants count from it
	floor  store.Floor // of the clock of the controllers' store, under any leader

	requests atomic.Uint64 // ids of lease requests and beats
	sessions atomic.Uint64
	waiters  sync.WaitGroup

	mu      sync.Mutex    // guards the rest
	link    *link         // nil while there is none
	up      chan struct{} // closed when there is one
	cause   error         // why there is none
	term    uint64        // the highest seen; lower ones are refused
	streams uint64        // that were opened
	lost    time.Time     // when the last one was lost, or a lease came too late
	moving  move
	leaving bool
	waits   map[string]*wait // by the address of a replica
	leads   *way             // to a replica that waited and leads now, until it is taken
	led     chan struct{}    // closed when there is one
	abandon func()           // ends the attempt or the stream that is under way; nil for none
}

var _ interface {
	twotier.Store
	twotier.Reconnecting
} = (*Client)(nil)

// New returns a client that Run connects. The error says what is wrong with cfg.
func New(cfg Config) (*Client, error) {
	dial, err := newDialer(cfg)
	if err != nil {
		return nil, err
	}
	return &Client{cfg: cfg, dial: dial, began: time.Now(), outage: outage{log: cfg.Log.With("address", cfg.Address)}, up: make(chan struct{}), waits: map[string]*wait{}, led: make(chan struct{}), cause: errors.New("not connected yet")}, nil
}

// Run keeps a stream open until ctx is done or the client has left, and lets h do
// what comes over it. Call it once.
func (c *Client) Run(ctx context.Context, h Handler) {
	var pause backoff
	defer c.outage.stop()
	ctx, stop := context.WithCancel(ctx)
	defer c.stopWaiting()
	defer stop()
	for {
		welcomed, err := c.connect(ctx, h)
		if c.disconnected(err) || ctx.Err() != nil {
			return
		}
		c.outage.lost(err)
		moves := c.moves()
		if welcomed || moves {
			pause.reset()
		}
		longest := longestPause
		waits := c.waiting() > 0 // one of the replicas is about to lead, and that is soonest known there
		if waits {
			longest = longestBeside
		}
		next := pause.next(longest, err)
		if moves && waits {
			next = twotier.MoveTime
		}
		c.pause(ctx, next)
	}
}

// pause waits, but not when a replica leads that waited.
func (c *Client) pause(ctx context.Context, d time.Duration) {
	c.mu.Lock()
	led := c.led
	c.mu.Unlock()
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
	case <-led:
	case <-ctx.Done():
	}
}

// connect opens a stream, unless one that waited is led by now, and returns when it ends.
func (c *Client) connect(ctx context.Context, h Handler) (welcomed bool, err error) {
	opening, cancel := context.WithCancel(ctx)
	defer cancel()
	w := c.take(cancel)
	if w == nil {
		if w, err = c.dial.open(opening, c.cfg.Address); err != nil {
			return false, err
		}
	}
	defer w.end()
	defer context.AfterFunc(opening, w.end)()
	l := newLink(w, cancel, c.sessions.Add(1), c.cfg.Log)
	l.ended, l.late = c.ended, c.answeredLate
	l.replicas = func(r *fleetpb.Replicas) { c.await(ctx, r) }
	welcome, err := l.greet(c.hello(h))
	if err != nil {
		return false, unserved(err)
	}
	if err := c.follow(welcome.GetTerm()); err != nil {
		return false, err
	}
	if !c.connected(l) {
		return true, nil
	}
	c.outage.began(welcome.GetTerm())
	return true, l.run(opening, h, welcome)
}

func (c *Client) hello(h Handler) *fleetpb.Hello {
	version, holders := h.InForce()
	_, edits := h.(Editor)
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.cfg.Identity
	return &fleetpb.Hello{
		PodUid: id.PodUID, BootNonce: id.BootNonce, Namespace: id.Namespace, Pod: id.Pod,
		Version: id.Version, ConfigVersion: version, Term: c.term, Holders: holders, Promises: true, Edits: edits,
		Capture: fleetpb.Capture(fleetpb.Capture_value["CAPTURE_"+strings.ToUpper(id.Capture)]),
		Mode:    fleetpb.Mode(fleetpb.Mode_value["MODE_"+strings.ToUpper(id.Mode)]),
	}
}

// follow takes over a leader's term, or refuses one that is over.
func (c *Client) follow(term uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if term < c.term {
		return fmt.Errorf("the controller leads in term %d, which ended when term %d began", term, c.term)
	}
	if term > c.term {
		c.floor.Pause() // between leaders the store's clock may stand still
	}
	c.term = term
	return nil
}

// connected makes l the link that leases and beats go over, unless the client is leaving.
func (c *Client) connected(l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving {
		return false
	}
	c.link, c.cause = l, nil
	c.streams++
	close(c.up)
	return true
}

// Connections returns how many streams there have been, and when the last one was lost that was, or
// a lease came over it that nobody waited for any more.
func (c *Client) Connections() (n uint64, lost time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams, c.lost
}

// disconnected records why there is no link and reports whether none is wanted.
func (c *Client) disconnected(err error) (left bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		err = errors.New("the stream ended")
	}
	c.unlink(err)
	c.abandon = nil
	return c.leaving
}

// answeredLate notes that the leader served this sidecar, and so others, although the call that asked
// has given it up.
func (c *Client) answeredLate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = time.Now()
}

// unlink notes that there is no link, and since when; c.mu is held.
func (c *Client) unlink(cause error) {
	if c.link != nil {
		c.up, c.lost = make(chan struct{}), time.Now()
	}
	c.link, c.cause = nil, cause
}

func (c *Client) current() (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link, c.cause
}

// expect returns the link, or why there is none and what is closed when there is one.
func (c *Client) expect() (l *link, up <-chan struct{}, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link, c.up, c.cause
}

// Apply asks the leading controller's own store. While there is no stream it fails at
// once. A return is handed to the stream and gets no answer, so its result says only
// that it was sent.
func (c *Client) Apply(ctx context.Context, key store.Key, p limiter.Params, cmd limiter.Command) (limiter.Result, error) {
	return c.apply(ctx, &target{Client: c, floor: &c.floor}, key, p, cmd)
}

// apply has the leading controller ask a store.
func (c *Client) apply(ctx context.Context, of *target, key store.Key, p limiter.Params, cmd limiter.Command) (limiter.Result, error) {
	l, err := c.current()
	if l == nil {
		return limiter.Result{}, c.unavailable(err)
	}
	floored := cmd
	floored.Floor = max(cmd.Floor, of.floor.At(c.local()))
	if cmd.Op == limiter.Return {
		err := l.send(ctx, of.message(0, key, p, floored))
		if err != nil {
			return limiter.Result{}, c.unavailable(err)
		}
		return limiter.Result{Granted: cmd.Want, Windows: cmd.Windows, Reason: limiter.Granted}, nil
	}
	id := c.requests.Add(1)
	reply, err := ask(ctx, l, l.out, l.leases, id, of.message(id, key, p, floored))
	if err == nil {
		err = c.follow(reply.GetTerm())
	}
	switch {
	case err != nil:
		return limiter.Result{}, c.unavailable(err)
	case reply.GetDefect():
		return limiter.Result{}, fmt.Errorf("the controller refuses the request: %s", reply.GetError())
	case reply.GetOfLimit():
		return limiter.Result{}, c.notServed(key.Scope, errors.New(reply.GetError()))
	case reply.GetError() != "":
		return limiter.Result{}, c.unavailable(errors.New(reply.GetError()))
	}
	res, err := resultOf(reply)
	if err == nil && reply.GetClockMicros() > 0 {
		of.floor.Answered(cmd, res, c.local())
	}
	return res, err
}

// local returns the local instant.
func (c *Client) local() int64 { return int64(time.Since(c.began)) }

func (c *Client) unavailable(cause error) error { return c.notServed(nil, cause) }

// notServed says that a part of the store is unavailable, nil for all of it.
func (c *Client) notServed(part store.Part, cause error) error {
	return &store.UnavailableError{Store: "controller at " + c.cfg.Address, Cause: cause, Part: part}
}

// Leave sends the final reports, says good-bye and waits until the controller
// has read it or ctx is done. Run returns.
func (c *Client) Leave(ctx context.Context, h Handler) error {
	c.mu.Lock()
	c.leaving = true
	l, cause := c.link, c.cause
	c.mu.Unlock()
	if l == nil {
		return fmt.Errorf("not connected to the controller: %w", cause)
	}
	return l.leave(ctx, h)
}

// A State is a connection as people are shown it.
type State struct {
	Connected bool   `json:"connected"`
	Streams   uint64 `json:"streams"` // opened since the start; more than 1 when some were lost
	Waiting   int    `json:"waiting"` // replicas that would serve at once if they led
	Address   string `json:"address"`
	Term      uint64 `json:"term"`
	Error     string `json:"error,omitempty"` // why it is not connected
}

// State returns the state of the connection.
func (c *Client) State() State {
	waiting := c.waiting()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := State{Connected: c.link != nil, Streams: c.streams, Waiting: waiting, Address: c.cfg.Address, Term: c.term}
	if c.cause != nil {
		s.Error = status.Convert(c.cause).Message()
	}
	return s
}

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/policy/revision"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A handler records what it is asked for.
type handler struct {
	mu      sync.Mutex
	version string
	refuse  error
	busy    chan struct{} // not nil: Apply waits until it is closed
	holders map[string]int64
	long    string // name of one more limit; empty: there is none
}

func (h *handler) Apply(version string, _ []byte, _ []*fleetpb.Secret) error {
	h.mu.Lock()
	busy := h.busy
	h.mu.Unlock()
	if busy != nil {
		<-busy
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse != nil {
		return h.refuse
	}
	h.version = version
	return nil
}

func (h *handler) Edit(e revision.Edit, _ []*fleetpb.Secret, _ bool) error {
	return h.Apply(e.Version, nil, nil)
}

func (h *handler) SetHolders(namespace, name string, n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holders[namespace+"/"+name] = n
}

func (h *handler) InForce() (version string, out []*fleetpb.Holders_Count) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, n := range h.holders {
		if namespace, policy, ok := strings.Cut(name, "/"); ok {
			out = append(out, &fleetpb.Holders_Count{Namespace: namespace, Policy: policy, Holders: n})
		}
	}
	return h.version, out
}

func (h *handler) Reached(server string, by store.Reached) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holders[server] = int64(by.Now)
}

func (h *handler) Report(_ time.Time, session uint64) *fleetpb.Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &fleetpb.Report{
		Limits: []*fleetpb.LimitReport{{Namespace: "shop", Policy: "checkout", Limit: "all", AdmittedTotal: int64(session)}},
		Pools:  []*fleetpb.PoolReport{{Namespace: "shop", Pool: "checkout", AdmittedTotal: int64(session)}},
	}
	if h.long != "" {
		r.Limits = append(r.Limits, &fleetpb.LimitReport{Namespace: "shop", Policy: "checkout", Limit: h.long})
	}
	return r
}

func (h *handler) Audit(q *fleetpb.AuditQuery) *fleetpb.AuditReply {
	return &fleetpb.AuditReply{Id: q.GetId(), Unknown: true}
}

func (h *handler) Promise(now, until limiter.Instant) (limiter.Instant, bool) {
	return now, until > now
}

// start runs a client of c until the test ends.
func start(t *testing.T, c *controller) (client *fleet.Client, h *handler, tokenFile string) {
	t.Helper()
	cfg, tokenFile := c.config(t)
	client, h = run(t, cfg)
	return client, h, tokenFile
}

func run(t *testing.T, cfg fleet.Config) (client *fleet.Client, h *handler) {
	t.Helper()
	client, err := fleet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h = &handler{version: "sha256:before", holders: map[string]int64{}}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		client.Run(ctx, h)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return client, h
}

var (
	key    = store.Key{Scope: store.Scope{Cluster: "c", Namespace: "shop", Policy: "checkout", Limit: "all"}, Hash: "ab"}
	params = limiter.Params{Rates: []limiter.Rate{{Limit: 10, Window: limiter.Second}}, Generation: 3}
	take   = limiter.Command{Op: limiter.Take, Min: 1, Want: 5}
)

// lease asks until there is a stream, and returns the answer.
func lease(t *testing.T, c *fleet.Client) (limiter.Result, error) {
	t.Helper()
	connected(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return c.Apply(ctx, key, params, take)
}

func connected(t *testing.T, c *fleet.Client) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); !c.State().Connected; {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not connected: %s", c.State().Error)
		}
	}
}

func wantUnavailable(t *testing.T, err error) {
	t.Helper()
	if _, ok := errors.AsType[*store.UnavailableError](err); !ok {
		t.Errorf("got error %v, want a *store.UnavailableError", err)
	}
}

func TestHelloIdentifiesTheSidecar(t *testing.T) {
	c := newController(t)
	start(t, c)
	s, hello := c.welcome(t, 7)
	want := &fleetpb.Hello{
		PodUid: "uid", BootNonce: "nonce", Namespace: "shop", Pod: "checkout-1", Version: "v1", ConfigVersion: "sha256:before",
		Capture: fleetpb.Capture_CAPTURE_NONE, Mode: fleetpb.Mode_MODE_BYPASS, Promises: true, Edits: true,
	}
	if diff := cmp.Diff(want, hello, protocmp.Transform()); diff != "" {
		t.Errorf("hello differs (-want +got):\n%s", diff)
	}
	if s.token != "Bearer first" {
		t.Errorf("authorization is %q", s.token)
	}
}

// TestTheNextHelloRepeatsTheReceivedHolders: its share, which it may be on meanwhile.
func TestTheNextHelloRepeatsTheReceivedHolders(t *testing.T) {
	c := newController(t)
	start(t, c)
	s, hello := c.welcome(t, 7)
	if len(hello.GetHolders()) != 0 {
		t.Errorf("the first hello says %v", hello.GetHolders())
	}
	told := []*fleetpb.Holders_Count{{Namespace: "shop", Policy: "checkout", Holders: 12}}
	s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Holders{Holders: &fleetpb.Holders{Counts: told}}})
	s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Audit{Audit: &fleetpb.AuditQuery{Id: 1}}})
	for s.next(t).GetAudit() == nil { // the holders come before it
	}
	s.end <- errors.New("the leader stops")
	_, hello = c.welcome(t, 8)
	if diff := cmp.Diff(told, hello.GetHolders(), protocmp.Transform()); diff != "" {
		t.Errorf("holders differ (-want +got):\n%s", diff)
	}
}

// TestAPromiseIsMadeWhenItIsAskedFor, and the leader is sent what the handler returned.
func TestAPromiseIsMadeWhenItIsAskedFor(t *testing.T) {
	c := newController(t)
	start(t, c)
	s, _ := c.welcome(t, 7)
	s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Promise{Promise: &fleetpb.PromiseRequest{NowMicros: 7, UntilMicros: 9}}})
	m := s.next(t)
	for m.GetPromise() == nil {
		m = s.next(t)
	}
	if diff := cmp.Diff(&fleetpb.Promise{UntilMicros: 9, BegunMicros: 7}, m.GetPromise(), protocmp.Transform()); diff != "" {
		t.Errorf("promise differs (-want +got):\n%s", diff)
	}
}

// An injector may be newer than its sidecars.
func TestHelloIsSilentOnWordsOfLaterVersions(t *testing.T) {
	c := newController(t)
	cfg, _ := c.config(t)
	cfg.Identity.Capture, cfg.Identity.Mode = "quantum", ""
	run(t, cfg)
	_, hello := c.welcome(t, 7)
	if hello.GetCapture() != fleetpb.Capture_CAPTURE_UNSPECIFIED || hello.GetMode() != fleetpb.Mode_MODE_UNSPECIFIED {
		t.Errorf("hello says %v and %v", hello.GetCapture(), hello.GetMode())
	}
}

func TestTheTokenIsReadForEveryStream(t *testing.T) {
	c := newController(t)
	client, _, file := start(t, c)
	s, _ := c.welcome(t, 7)
	writeToken(t, file, "second")
	s.end <- errors.New("the leader stops")
	s, hello := c.welcome(t, 7)
	if s.token != "Bearer second" {
		t.Errorf("authorization is %q", s.token)
	}
	if hello.GetTerm() != 7 {
		t.Errorf("the sidecar forgot term 7: %d", hello.GetTerm())
	}
	connected(t, client)
	if n := client.State().Streams; n != 2 {
		t.Errorf("%d streams were opened", n)
	}
}

func TestLeasesAreAnsweredById(t *testing.T) {
	c := newController(t)
	client, _, _ := start(t, c)
	s, _ := c.welcome(t, 7)
	type answer struct {
		res limiter.Result
		err error
	}
	answers := make(chan answer, 2)
	for range 2 {
		go func() {
			res, err := lease(t, client)
			answers <- answer{res, err}
		}()
	}
	first := expect(t, s, (*fleetpb.FromHolder).GetLease)
	second := expect(t, s, (*fleetpb.FromHolder).GetLease)
	want := &fleetpb.LeaseRequest{
		Id: first.GetId(), Key: &fleetpb.Key{Namespace: "shop", Policy: "checkout", Limit: "all", Hash: "ab"},
		Generation: 3, Rates: []*fleetpb.Rate{{Limit: 10, WindowMicros: 1e6}}, Min: 1, Want: 5,
	}
	if diff := cmp.Diff(want, first, protocmp.Transform()); diff != "" {
		t.Errorf("request differs (-want +got):\n%s", diff)
	}
	for i, r := range []*fleetpb.LeaseRequest{second, first} { // the later one first
		s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Lease{Lease: &fleetpb.LeaseReply{
			Id: r.GetId(), Term: 7, Granted: int64(i + 1), Remaining: 4, ExpiresInMicros: 500, NowMicros: 1e6,
			Windows: []*fleetpb.Window{{Rate: &fleetpb.Rate{Limit: 10, WindowMicros: 1e6}, Index: 1, Granted: 6}},
		}}})
	}
	granted := map[int64]bool{}
	for range 2 {
		a := <-answers
		if a.err != nil {
			t.Fatal(a.err)
		}
		granted[a.res.Granted] = true
		if a.res.Windows.N != 1 || a.res.Windows.Open[0].Index != 1 || a.res.ExpiresIn != 500 || a.res.Now != 1e6 {
			t.Errorf("got %+v", a.res)
		}
	}
	if !granted[1] || !granted[2] {
		t.Errorf("answers were mixed up: %v", granted)
	}
}

func TestWithoutAStreamTheStoreIsAwayAtOnce(t *testing.T) {
	cfg, _ := newController(t).config(t)
	client, err := fleet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Apply(t.Context(), key, params, take)
	wantUnavailable(t, err)
}

// TestAnAnswerThatComesTooLateShowsTheLeader: it serves others of the windows that are open. One that
// says why nothing is decided does not.
func TestAnAnswerThatComesTooLateShowsTheLeader(t *testing.T) {
	for name, tc := range map[string]struct {
		reply *fleetpb.LeaseReply
		want  bool
	}{
		"a decision":   {&fleetpb.LeaseReply{Term: 7, Granted: 1, NowMicros: 1e6}, true},
		"no decision":  {&fleetpb.LeaseReply{Term: 7, Error: "not yet", OfLimit: true}, false},
		"no such call": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newController(t)
			client, _, _ := start(t, c)
			s, _ := c.welcome(t, 7)
			connected(t, client)
			ctx, giveUp := context.WithCancel(t.Context())
			given := make(chan error)
			go func() {
				_, err := client.Apply(ctx, key, params, take)
				given <- err
			}()
			asked := expect(t, s, (*fleetpb.FromHolder).GetLease)
			giveUp()
			wantUnavailable(t, <-given)
			if tc.reply != nil {
				tc.reply.Id = asked.GetId()
				s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Lease{Lease: tc.reply}})
			}
			go func() { // all before is read when this is
				next := expect(t, s, (*fleetpb.FromHolder).GetLease)
				s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Lease{Lease: &fleetpb.LeaseReply{Id: next.GetId(), Term: 7, NowMicros: 1e6}}})
			}()
			if _, err := lease(t, client); err != nil {
				t.Fatal(err)
			}
			if _, lost := client.Connections(); lost.IsZero() == tc.want {
				t.Errorf("the leader served others until %v", lost)
			}
		})
	}
}

// TestALeaseEndsWithItsStream, whose end is known by then: a window that is open has to be reported
// from one that begins after the leader was lost.
func TestALeaseEndsWithItsStream(t *testing.T) {
	c := newController(t)
	client, _, _ := start(t, c)
	s, _ := c.welcome(t, 7)
	go func() {
		expect(t, s, (*fleetpb.FromHolder).GetLease)
		s.end <- errors.New("the leader stops")
	}()
	_, err := lease(t, client)
	_, lost := client.Connections()
	wantUnavailable(t, err)
	if lost.IsZero() {
		t.Error("the lease failed before the leader was noted as lost")
	}
}

// TestLeasesWaitForTheNextLeader: for one that follows a leader which said good-bye.
func TestLeasesWaitForTheNextLeader(t *testing.T) {
	goodbye := &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Goodbye{Goodbye: &fleetpb.Goodbye{Reason: "it hands over"}}}
	for name, tc := range map[string]struct{ planned, next, want bool }{
		"it hands over and is followed":      {planned: true, next: true, want: true},
		"it hands over and nobody follows":   {planned: true},
		"it crashes, whether it is followed": {next: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newController(t)
			client, _, _ := start(t, c)
			s, _ := c.welcome(t, 7)
			connected(t, client)
			n, _ := client.Connections()
			if client.Moved(t.Context(), n) {
				t.Error("it moved before the leader stopped")
			}
			if tc.planned {
				s.say(t, goodbye)
			}
			s.end <- errors.New("the leader stops")
			_, err := client.Apply(t.Context(), key, params, take)
			wantUnavailable(t, err) // until there is another one
			if tc.next && !tc.planned {
				next, _ := c.welcome(t, 8)
				expect(t, next, (*fleetpb.FromHolder).GetReport)
			}
			moved := make(chan bool)
			go func() { moved <- client.Moved(t.Context(), n) }()
			if tc.next && tc.planned {
				c.welcome(t, 8)
			}
			if got := <-moved; got != tc.want {
				t.Errorf("moved is %t, want %t", got, tc.want)
			}
			if client.Moved(t.Context(), n+1) {
				t.Error("the next leader moved, too")
			}
		})
	}
}

func TestALeaseEndsWithItsContext(t *testing.T) {
	c := newController(t)
	client, _, _ := start(t, c)
	c.welcome(t, 7)
	connected(t, client)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := client.Apply(ctx, key, params, take)
	wantUnavailable(t, err)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the cause is %v", err)
	}
}

func TestErrorsOfTheControllerAreOutages(t *testing.T) {
	c := newController(t)
	client, _, _ := start(t, c)
	s, _ := c.welcome(t, 7)
	for name, tc := range map[string]struct {
		reply *fleetpb.LeaseReply
		part  store.Part
	}{
		"of the store":       {&fleetpb.LeaseReply{Term: 7, Error: "not yet"}, nil},
		"of the limit alone": {&fleetpb.LeaseReply{Term: 7, Error: "not yet", OfLimit: true}, key.Scope},
	} {
		go answerWith(t, s, tc.reply)
		_, err := lease(t, client)
		wantUnavailable(t, err)
		if away, _ := errors.AsType[*store.UnavailableError](err); away != nil && away.Part != tc.part {
			t.Errorf("%s: it speaks for %v, want %v", name, away.Part, tc.part)
		}
	}
}

func answerWith(t *testing.T, s *session, r *fleetpb.LeaseReply) {
	t.Helper()
	r.Id = expect(t, s, (*fleetpb.FromHolder).GetLease).GetId()
	s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Lease{Lease: r}})
}

// TestDefectsAreNotOutages: a failure action may not act on them.
func TestDefectsAreNotOutages(t *testing.T) {
	for name, reply := range map[string]*fleetpb.LeaseReply{
		"a refused request": {Term: 7, Error: "other rates", Defect: true},
		"an unknown reason": {Term: 7, Reason: 99},
		"too many windows":  {Term: 7, Windows: make([]*fleetpb.Window, limiter.MaxRates+1)},
	} {
		t.Run(name, func(t *testing.T) {
			c := newController(t)
			client, _, _ := start(t, c)
			s, _ := c.welcome(t, 7)
			for i := range reply.GetWindows() {
				reply.Windows[i] = &fleetpb.Window{}
			}
			go answerWith(t, s, reply)
			_, err := lease(t, client)
			var unavailable *store.UnavailableError
			if err == nil || errors.As(err, &unavailable) {
				t.Errorf("got error %v", err)
			}
		})
	}
}

// TestAGatewayHasAClockOfItsOwn: what the controllers' store has reached says nothing of the
// store behind it, nor of another one.
func TestAGatewayHasAClockOfItsOwn(t *testing.T) {
	c := newController(t)
	client, _, _ := start(t, c)
	s, _ := c.welcome(t, 7)
	connected(t, client)
	ahead, behind := client.Gateway("aaaa"), client.Gateway("bbbb")
	ask := func(of twotier.Store, clock int64) *fleetpb.LeaseRequest {
		t.Helper()
		asked := make(chan *fleetpb.LeaseRequest, 1)
		go func() {
			r := expect(t, s, (*fleetpb.FromHolder).GetLease)
			asked <- r
			s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Lease{Lease: &fleetpb.LeaseReply{
				Id: r.GetId(), Term: 7, Granted: 1, ExpiresInMicros: 1e6, NowMicros: 9e15, ClockMicros: clock,
			}}})
		}()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := of.Apply(ctx, key, params, take); err != nil {
			t.Fatal(err)
		}
		return <-asked
	}
	if r := ask(ahead, 9e15); r.GetGateway() != "aaaa" || r.GetFloorMicros() != 0 {
		t.Errorf("it is asked with %v", r)
	}
	if r := ask(ahead, 9e15); r.GetFloorMicros() < 9e15 {
		t.Errorf("it is asked with a floor of %d", r.GetFloorMicros())
	}
	if r := ask(behind, 0); r.GetGateway() != "bbbb" || r.GetFloorMicros() != 0 {
		t.Errorf("another one is asked with %v", r)
	}
	if r := ask(behind, 0); r.GetFloorMicros() != 0 {
		t.Errorf("one that has several clocks is asked with a floor of %d", r.GetFloorMicros())
	}
	if r := ask(client, 9e15); r.GetGateway() != "" || r.GetFloorMicros() != 0 {
		t.Errorf("the controller's own store is asked with %v", r)
	}
}

func TestLowerTermsAreRefused(t *testing.T) {
	t.Run("in a reply", func(t *testing.T) {
		c := newController(t)
		client, _, _ := start(t, c)
		s, _ := c.welcome(t, 7)
		go answerWith(t, s, &fleetpb.LeaseReply{Term: 6, Granted: 5, ExpiresInMicros: 1e6})
		res, err := lease(t, client)
		wantUnavailable(t, err)
		if res.Granted != 0 {
			t.Errorf("%d units of a term that is over", res.Granted)
		}
	})
	t.Run("in a welcome", func(t *testing.T) {
		c := newController(t)
		client, _, _ := start(t, c)
		s, _ := c.welcome(t, 7)
		connected(t, client)
		s.end <- errors.New("the leader stops")
		s, _ = c.welcome(t, 6)
		if m := s.next(t); m != nil {
			t.Errorf("the sidecar speaks with a leader of term 6 after term 7: %v", m)
		}
		eventually(t, "the state does not say why it is not connected", func() bool {
			return strings.Contains(client.State().Error, "in term 6, which ended when term 7 began")
		})
		c.welcome(t, 8)
		connected(t, client)
		if term := client.State().Term; term != 8 {
			t.Errorf("term is %d", term)
		}
	})
}

func TestAReturnIsSentOnceAndNotAwaited(t *testing.T) {
	c := newController(t)
	client, _, _ := start(t, c)
	s, _ := c.welcome(t, 7)
	connected(t, client)
	giveBack := limiter.Command{Op: limiter.Return, Want: 4, Windows: limiter.Windows{N: 1}}
	giveBack.Windows.Open[0] = limiter.OpenWindow{Rate: params.Rates[0], Index: 9}
	res, err := client.Apply(t.Context(), key, params, giveBack)
	if err != nil || res.Granted != 4 || res.Windows != giveBack.Windows {
		t.Fatalf("%+v, %v", res, err)
	}
	got := expect(t, s, (*fleetpb.FromHolder).GetLease)
	if got.GetId() != 0 || got.GetOp() != int32(limiter.Return) || got.GetWant() != 4 || got.GetWindows()[0].GetIndex() != 9 {
		t.Errorf("got %v", got)
	}
}

func configMessage(version string, snapshot []byte) *fleetpb.ToHolder {
	return &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Config{Config: &fleetpb.Config{Version: version, Snapshot: snapshot}}}
}

func TestConfigIsAcknowledged(t *testing.T) {
	data := []byte("a snapshot")
	version := policy.Version(data)
	for name, tc := range map[string]struct {
		sent   string
		refuse error
		want   string // part of the error
		after  string // version in force
	}{
		"that was put in force":          {version, nil, "", version},
		"that the handler refuses":       {version, errors.New("no such algorithm"), "no such algorithm", "sha256:before"},
		"that is not what its name says": {"sha256:other", nil, "changed on the way", "sha256:before"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newController(t)
			_, h, _ := start(t, c)
			h.mu.Lock()
			h.refuse = tc.refuse
			h.mu.Unlock()
			s, _ := c.welcome(t, 7)
			s.say(t, configMessage(tc.sent, data))
			ack := expect(t, s, (*fleetpb.FromHolder).GetAcknowledge)
			if ack.GetVersion() != tc.sent || !strings.Contains(ack.GetError(), tc.want) || (tc.want == "") != (ack.GetError() == "") {
				t.Errorf("got %v", ack)
			}
			if version, _ := h.InForce(); version != tc.after {
				t.Errorf("%s is in force", version)
			}
		})
	}
}

func TestAnEditIsAcknowledged(t *testing.T) {
	for name, tc := range map[string]struct {
		refuse error
		whole  bool
		after  string // version in force
	}{
		"that is made":                     {nil, false, "sha256:next"},
		"that the handler refuses":         {errors.New("no such algorithm"), false, "sha256:before"},
		"that is of another version":       {revision.ErrBase, true, "sha256:before"},
		"that does not make what it names": {fmt.Errorf("%w: it is torn", revision.ErrBase), true, "sha256:before"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newController(t)
			_, h, _ := start(t, c)
			h.mu.Lock()
			h.refuse = tc.refuse
			h.mu.Unlock()
			s, _ := c.welcome(t, 7)
			s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Config{Config: &fleetpb.Config{Version: "sha256:next", Base: "sha256:before"}}})
			ack := expect(t, s, (*fleetpb.FromHolder).GetAcknowledge)
			if ack.GetVersion() != "sha256:next" || ack.GetWhole() != tc.whole || (tc.refuse == nil) != (ack.GetError() == "") {
				t.Errorf("got %v", ack)
			}
			if version, _ := h.InForce(); version != tc.after {
				t.Errorf("%s is in force", version)
			}
		})
	}
}

func TestHoldersAuditsAndReports(t *testing.T) {
	c := newController(t)
	_, h, _ := start(t, c)
	s, _ := c.welcome(t, 7)
	s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Holders{Holders: &fleetpb.Holders{
		Counts: []*fleetpb.Holders_Count{{Namespace: "shop", Policy: "checkout", Holders: 12}},
	}}})
	s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Clocks{Clocks: &fleetpb.Clocks{
		Clocks: []*fleetpb.Clocks_Clock{{Server: "Redis|redis:6379|", NowMicros: 5e12}},
	}}})
	s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Audit{Audit: &fleetpb.AuditQuery{Id: 5}}})
	if reply := expect(t, s, (*fleetpb.FromHolder).GetAudit); reply.GetId() != 5 || !reply.GetUnknown() {
		t.Errorf("got %v", reply)
	}
	h.mu.Lock()
	if h.holders["shop/checkout"] != 12 || h.holders["Redis|redis:6379|"] != 5e12 { // received before the audit was asked
		t.Errorf("holders are %v", h.holders)
	}
	h.mu.Unlock()
	for range 3 {
		if r := expect(t, s, (*fleetpb.FromHolder).GetReport); r.GetLimits()[0].GetAdmittedTotal() != 1 || r.GetPools()[0].GetAdmittedTotal() != 1 || r.GetMore() {
			t.Errorf("got %v, want the first session's", r)
		}
	}
	s.end <- errors.New("the leader stops")
	s, _ = c.welcome(t, 8)
	if r := expect(t, s, (*fleetpb.FromHolder).GetReport); r.GetLimits()[0].GetAdmittedTotal() != 2 {
		t.Errorf("got %v, want the second session's", r)
	}
}

// TestALargeReportIsSentInParts: all but the last say that there is more.
func TestALargeReportIsSentInParts(t *testing.T) {
	c := newController(t)
	_, h, _ := start(t, c)
	h.mu.Lock()
	h.long = strings.Repeat("x", 1<<20)
	h.mu.Unlock()
	s, _ := c.welcome(t, 7)
	part := expect(t, s, (*fleetpb.FromHolder).GetReport)
	if len(part.GetLimits()) != 1 || part.GetLimits()[0].GetLimit() != "all" || len(part.GetPools()) != 1 || !part.GetMore() {
		t.Errorf("the first part has %d limits and %d pools, more: %t", len(part.GetLimits()), len(part.GetPools()), part.GetMore())
	}
	last := expect(t, s, (*fleetpb.FromHolder).GetReport)
	if len(last.GetLimits()) != 1 || last.GetLimits()[0].GetLimit() != h.long || len(last.GetPools()) != 0 || last.GetMore() {
		t.Errorf("the last part has %d limits and %d pools, more: %t", len(last.GetLimits()), len(last.GetPools()), last.GetMore())
	}
}

func TestLeave(t *testing.T) {
	c := newController(t)
	client, h, _ := start(t, c)
	s, _ := c.welcome(t, 7)
	connected(t, client)
	left := make(chan error, 1)
	go func() { left <- client.Leave(t.Context(), h) }()
	var last *fleetpb.FromHolder
	for m := s.next(t); m != nil; m = s.next(t) {
		if m.GetLeave() != nil && last.GetReport() == nil {
			t.Errorf("before leave came %v, want the final report", last)
		}
		last = m
		if m.GetLeave() != nil {
			break
		}
	}
	s.end <- nil
	if err := <-left; err != nil {
		t.Error(err)
	}
	select {
	case <-c.sessions:
		t.Error("it connected again after it left")
	case <-time.After(300 * time.Millisecond): // longer than the first pause
	}
}

func TestLeavingWithoutAStreamSaysSo(t *testing.T) {
	cfg, _ := newController(t).config(t)
	client, err := fleet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Leave(t.Context(), &handler{}); err == nil {
		t.Error("the controller was not reached, and Leave returned no error")
	}
}

func TestAnotherCertificateIsRefused(t *testing.T) {
	for name, change := range map[string]func(*fleet.Config, []byte){
		"of another authority": func(c *fleet.Config, other []byte) { c.CABundle = other },
		"of another name":      func(c *fleet.Config, _ []byte) { c.ServerName = "elsewhere" },
	} {
		t.Run(name, func(t *testing.T) {
			c := newController(t)
			cfg, _ := c.config(t)
			_, other := newCertificate(t)
			change(&cfg, other)
			client, err := fleet.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer stop()
			client.Run(ctx, &handler{})
			if len(c.sessions) > 0 {
				t.Error("the token was given to a server that nobody vouches for")
			}
		})
	}
}

func TestABundleWithoutCertificatesIsAnError(t *testing.T) {
	if _, err := fleet.New(fleet.Config{CABundle: []byte("nothing")}); err == nil {
		t.Error("accepted")
	}
}

// The reading of the store's clock is a floor of every later command, also of one to a
// controller that leads later. A budget's clock is not the store's.
func TestACommandCarriesWhatTheStoresClockShowed(t *testing.T) {
	c := newController(t)
	client, _, _ := start(t, c)
	s, _ := c.welcome(t, 7)
	ask := func(reply *fleetpb.LeaseReply) (floor int64) {
		t.Helper()
		return answer(t, client, s, reply)
	}
	budget := &fleetpb.LeaseReply{Term: 7, Granted: 1, NowMicros: 9e15}
	if got := ask(budget); got != 0 {
		t.Errorf("the first command has the floor %d", got)
	}
	if got := ask(&fleetpb.LeaseReply{Term: 7, Granted: 1, NowMicros: 5e12, ClockMicros: 5e12}); got != 0 {
		t.Errorf("after the answer of a budget the floor is %d", got)
	}
	if got := ask(budget); got < 5e12 || got > 5e12+60e6 {
		t.Errorf("after %d the floor is %d", int64(5e12), got)
	}
	if _, err := client.Apply(t.Context(), key, params, limiter.Command{Op: limiter.Return, Want: 1, Floor: 6e12}); err != nil {
		t.Fatal(err)
	}
	if got := expect(t, s, (*fleetpb.FromHolder).GetLease).GetFloorMicros(); got != 6e12 {
		t.Errorf("a return has the floor %d, not the caller's", got)
	}
}

// The next leader's clock starts where that of the one before stood when it stopped,
// however long there was no leader: the floor does not go on in between.
func TestTheFloorWaitsForTheNextLeader(t *testing.T) {
	c := newController(t)
	client, _, _ := start(t, c)
	s, _ := c.welcome(t, 7)
	answer(t, client, s, &fleetpb.LeaseReply{Term: 7, Granted: 1, NowMicros: 5e12, ClockMicros: 5e12})
	s.end <- errors.New("it stepped down")
	s, _ = c.welcome(t, 8)
	connected(t, client)
	if got := answer(t, client, s, &fleetpb.LeaseReply{Term: 8, Granted: 1, NowMicros: 5e12 + 1, ClockMicros: 5e12 + 1}); got != 5e12 {
		t.Errorf("the first command to the next leader has the floor %d", got)
	}
	if got := answer(t, client, s, &fleetpb.LeaseReply{Term: 8, Granted: 1, NowMicros: 5e12 + 2, ClockMicros: 5e12 + 2}); got <= 5e12 {
		t.Errorf("the next one has the floor %d", got)
	}
}

// A clock that is behind catches up with the floor only when the floor stands still.
func TestTheFloorWaitsForAClockThatIsBehind(t *testing.T) {
	c := newController(t)
	client, _, _ := start(t, c)
	s, _ := c.welcome(t, 7)
	answer(t, client, s, &fleetpb.LeaseReply{Term: 7, Granted: 1, NowMicros: 5e12, ClockMicros: 5e12})
	behind := &fleetpb.LeaseReply{Term: 7, Reason: int32(limiter.ClockBehind), NowMicros: 5e12 + 1, ClockMicros: 5e12 + 1}
	answer(t, client, s, behind)
	first := answer(t, client, s, behind)
	if again := answer(t, client, s, behind); again != first || first < 5e12 {
		t.Errorf("the floor goes on from %d to %d", first, again)
	}
}

// answer has the client ask for a lease, answers it, and returns the floor of the command.
func answer(t *testing.T, client *fleet.Client, s *session, reply *fleetpb.LeaseReply) (floor int64) {
	t.Helper()
	done := make(chan error)
	go func() {
		_, err := lease(t, client)
		done <- err
	}()
	r := expect(t, s, (*fleetpb.FromHolder).GetLease)
	reply.Id = r.GetId()
	if reply.GetReason() == int32(limiter.ClockBehind) {
		reply.RetryAfterMicros = r.GetFloorMicros() - reply.GetNowMicros()
	}
	s.say(t, &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Lease{Lease: reply}})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return r.GetFloorMicros()
}

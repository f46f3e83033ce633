package membudget

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A client is a connection of a test.
type client struct {
	*Connection
	name    string
	pending bool
	yielded *[]string // names of those that gave way
}

func (c *client) Pending() bool { return c.pending }

func (c *client) Yield(head bool) {
	name := c.name
	if head {
		name += " with a head"
	}
	*c.yielded = append(*c.yielded, name)
	c.Close()
}

// A house is a budget for a few connections.
type house struct {
	t *testing.T
	*Budget
	port    *Port
	yielded []string
}

func newHouse(t *testing.T, connections int64) *house {
	t.Helper()
	r := New(connections * ConnectionBytes)
	return &house{t: t, Budget: r, port: r.Port(true)}
}

// enter lets a connection in that is idle since then, or fails.
func (h *house) enter(from, name string, since time.Duration) *client {
	h.t.Helper()
	c, ok := h.dial(from, name, since)
	if !ok {
		h.t.Fatalf("there is no memory for %s", name)
	}
	return c
}

func (h *house) dial(from, name string, since time.Duration) (*client, bool) {
	c := &client{name: name, yielded: &h.yielded}
	var ok bool
	c.Connection, ok = h.port.Connect(netip.MustParseAddr(from), since, c)
	return c, ok
}

func (h *house) wantYielded(names ...string) {
	h.t.Helper()
	if !slices.Equal(h.yielded, names) {
		h.t.Errorf("%q gave way, want %q", h.yielded, names)
	}
	h.yielded = nil
}

// fill lets that many connections in, with a request in flight, each from an address of its own.
func (h *house) fill(connections int) {
	h.t.Helper()
	for i := range connections {
		h.enter(fmt.Sprint("10.1.0.", i), "busy", 0).Active()
	}
}

var get = &http.Request{ProtoMajor: 1}

// TestTheLongestIdleConnectionGivesWay and none before some has to be free.
func TestTheLongestIdleConnectionGivesWay(t *testing.T) {
	h := newHouse(t, 64)
	h.fill(10)
	for i := range 43 { // four fifths of what is left
		h.enter("10.0.0.1", fmt.Sprint(i), time.Duration(100-i))
	}
	h.wantYielded()
	h.enter("10.0.0.1", "new", 200)
	h.wantYielded("42")
	h.enter("10.0.0.1", "newer", 201)
	h.wantYielded("41")
	if idle, _ := h.Closed(); idle != 2 {
		t.Errorf("%d connections were counted", idle)
	}
}

// TestTheAddressWithTheMostIdleConnectionsGivesWay although those of others are idle for longer.
func TestTheAddressWithTheMostIdleConnectionsGivesWay(t *testing.T) {
	h := newHouse(t, 64)
	h.fill(52)
	for i := range 4 {
		h.enter("10.0.0.1", fmt.Sprint("one ", i), time.Duration(i))
		h.enter("10.0.0.2", fmt.Sprint("two ", i), time.Duration(10+i))
	}
	for i := range 2 {
		h.enter("10.0.0.2", fmt.Sprint("more ", i), time.Duration(20+i))
	}
	h.enter("10.0.0.3", "a", 30)
	h.enter("10.0.0.4", "b", 31)
	h.wantYielded()
	h.enter("10.0.0.5", "c", 32)
	h.wantYielded("two 0")
	h.enter("10.0.0.6", "d", 33)
	h.wantYielded("two 1")
	h.enter("10.0.0.7", "e", 34)
	h.wantYielded("one 0")
}

// TestHeadsGiveWayOnlyWhenNoneIsIdle and requests in flight never do.
func TestHeadsGiveWayOnlyWhenNoneIsIdle(t *testing.T) {
	h := newHouse(t, 64)
	h.fill(58)
	slow := h.enter("10.0.0.1", "slow", 1)
	busy := h.enter("10.0.0.2", "busy", 2)
	idle := h.enter("10.0.0.3", "idle", 3)
	h.enter("10.0.0.4", "idle too", 4)
	if !slow.Head(5, 10) || !busy.Active() {
		t.Fatal("they have given way")
	}
	h.enter("10.0.0.5", "e", 6)
	h.wantYielded()
	for i, want := range []string{"idle", "idle too", "e", "slow with a head"} {
		c := h.enter("10.0.1."+fmt.Sprint(i), "f", 7)
		h.wantYielded(want)
		c.Active()
	}
	h.enter("10.0.1.9", "f", 7).Active() // in the place of the head
	if _, ok := h.dial("10.0.2.1", "g", 8); ok || len(h.yielded) > 0 {
		t.Errorf("there was memory although all work: %q", h.yielded)
	}
	if h.Refused(Connections) != 1 {
		t.Errorf("%d refusals were counted", h.Refused(Connections))
	}
	if idle.Active() || slow.Head(9, 1) || !busy.Active() {
		t.Error("a connection that gave way goes on, or one that did not does not")
	}
}

// TestAConnectionWithARequestThatIsNotReadYetStays, since it would be lost.
func TestAConnectionWithARequestThatIsNotReadYetStays(t *testing.T) {
	h := newHouse(t, 64)
	h.fill(62)
	c := h.enter("10.0.0.1", "asks", 1)
	c.pending = true
	h.enter("10.0.0.2", "idle", 2)
	if _, ok := h.dial("10.0.0.3", "new", 3); ok {
		t.Error("there was memory")
	}
	h.wantYielded()
}

// TestAnAddressLeavesMemoryToOthers: a fifth of all, whatever it takes.
func TestAnAddressLeavesMemoryToOthers(t *testing.T) {
	h := newHouse(t, 100)
	greedy := 0
	for ; ; greedy++ {
		c, ok := h.dial("10.0.0.1", "greedy", 1)
		if !ok {
			break
		}
		c.Active()
	}
	if greedy != 80 {
		t.Errorf("it has %d of 100", greedy)
	}
	for range 16 { // four fifths of a fifth
		h.enter("10.0.0.2", "modest", 2).Active()
	}
	h.wantYielded()
}

// TestAReservedPortIsOpenWhenOthersAreFull so that probes and metrics are answered.
func TestAReservedPortIsOpenWhenOthersAreFull(t *testing.T) {
	r := New(3200 * ConnectionBytes)
	proxied, admin := r.Port(false), r.Port(true)
	for i := 0; ; i++ {
		from := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		c, ok := proxied.Connect(from, 1, nil)
		if !ok {
			break
		}
		c.Active()
	}
	if left := r.size - r.total(); left < r.size/reservedPart {
		t.Errorf("%d of %d bytes are left", left, r.size)
	}
	c, ok := admin.Connect(netip.MustParseAddr("10.9.9.9"), 1, nil)
	if !ok {
		t.Fatal("there is no memory for a probe")
	}
	if _, ok := c.Admit(get); !ok {
		t.Error("there is no memory for the request of a probe")
	}
}

// TestWhatRequestsTake by protocol, head and body.
func TestWhatRequestsTake(t *testing.T) {
	body := http.MaxBytesReader(nil, http.NoBody, 1)
	large := http.Header{"X-Filler": {strings.Repeat("x", 20<<10-8)}}
	for name, tc := range map[string]struct {
		r    http.Request
		want [classes]int64
	}{
		"GET":             {http.Request{ProtoMajor: 1, Body: http.NoBody, Header: large}, [classes]int64{Requests: RequestBytes}},
		"POST":            {http.Request{ProtoMajor: 1, Body: body}, [classes]int64{Requests: RequestBytes, Bodies: UploadBytes}},
		"WebSocket":       {http.Request{ProtoMajor: 1, Header: http.Header{"Upgrade": {"WebSocket"}}}, [classes]int64{Requests: RequestBytes, Bodies: TunnelBytes}},
		"stream":          {http.Request{ProtoMajor: 2, Body: http.NoBody}, [classes]int64{Requests: StreamBytes}},
		"stream, large":   {http.Request{ProtoMajor: 2, Header: large}, [classes]int64{Requests: StreamBytes, Heads: 48 << 10}},
		"stream and body": {http.Request{ProtoMajor: 2, Body: body}, [classes]int64{Requests: StreamBytes, Bodies: WindowBytes}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, 1000)
			c := h.enter("10.0.0.1", "c", 1)
			tc.want[Connections] = ConnectionBytes
			q, ok := c.Admit(&tc.r)
			if got := h.all(); !ok || got != tc.want {
				t.Errorf("took %v, %v, want %v", got, ok, tc.want)
			}
			q.Done()
			if got := h.all(); got != [classes]int64{Connections: ConnectionBytes} {
				t.Errorf("%v are left", got)
			}
		})
	}
}

// TestAHeadThatGoesOnTakesItsBuffer, and three bytes for each beyond the first 4 KiB.
func TestAHeadThatGoesOnTakesItsBuffer(t *testing.T) {
	h := newHouse(t, 1000)
	c := h.enter("10.0.0.1", "c", 1)
	for i, step := range []struct {
		come int
		want int64
	}{{1, ScratchBytes}, {4<<10 - 1, ScratchBytes}, {1, ScratchBytes + 3}, {10 << 10, ScratchBytes + 3 + 30<<10}} {
		if ok := c.Head(2, step.come); !ok || h.Taken(Heads) != step.want {
			t.Errorf("step %d: %d bytes are taken, %v, want %d", i, h.Taken(Heads), ok, step.want)
		}
	}
	if c.Idle(3); h.Taken(Heads) != 0 {
		t.Errorf("%d bytes are left", h.Taken(Heads))
	}
}

// TestAConnectionTakesWhatThePortSays, and parks from there.
func TestAConnectionTakesWhatThePortSays(t *testing.T) {
	h := newHouse(t, 100)
	h.port = h.port.Of(ServerBytes)
	c := h.enter("10.0.0.1", "c", 1)
	for i, step := range []struct {
		do   func()
		want int64
	}{
		{func() {}, ServerBytes},
		{func() { c.Park(WaitingBytes) }, WaitingBytes},
		{func() { c.Unpark(WaitingBytes) }, ServerBytes},
		{func() { c.Head(2, 4<<10) }, ServerBytes},
		{c.Close, 0},
	} {
		if step.do(); h.total() != step.want {
			t.Errorf("step %d: %d bytes are taken, want %d", i, h.total(), step.want)
		}
	}
}

// TestBodiesOfAConnectionShareAWindow over HTTP/2.
func TestBodiesOfAConnectionShareAWindow(t *testing.T) {
	h := newHouse(t, 1000)
	c := h.enter("10.0.0.1", "c", 1)
	r := &http.Request{ProtoMajor: 2, Body: http.MaxBytesReader(nil, http.NoBody, 1)}
	var requests []Request
	for i := range int64(8) {
		q, _ := c.Admit(r)
		requests = append(requests, q)
		if got, want := h.Taken(Bodies), min((i+1)*WindowBytes, WindowsBytes); got != want {
			t.Errorf("%d bodies took %d, want %d", i+1, got, want)
		}
	}
	for _, q := range requests {
		q.Done()
	}
	if got := h.Taken(Bodies); got != 0 {
		t.Errorf("%d are left", got)
	}
}

// TestAConnectionThatIsClosedTakesNothing: its goroutine may be about to.
func TestAConnectionThatIsClosedTakesNothing(t *testing.T) {
	h := newHouse(t, 64)
	c := h.enter("10.0.0.1", "c", 1)
	c.Close()
	if c.Grow() || c.Head(2, 20<<10) || c.Active() {
		t.Error("it goes on")
	}
	if n := h.total(); n != 0 {
		t.Errorf("%d bytes are taken", n)
	}
}

// TestBytesOfConnectionsThatAreGivenBackAreNoted once each, and those of requests are not.
func TestBytesOfConnectionsThatAreGivenBackAreNoted(t *testing.T) {
	h := newHouse(t, 100)
	var noted int64
	h.OnFreed(func(n int64) { noted += n })
	c := h.enter("10.0.0.1", "c", 1)
	q, _ := c.Admit(get)
	q.Done()
	for i, step := range []struct {
		do   func()
		want int64
	}{
		{func() { c.Park(ParkedBytes) }, ConnectionBytes - ParkedBytes},
		{func() { c.Unpark(ParkedBytes) }, 0},
		{func() { c.Park(ParkedBytes) }, ConnectionBytes - ParkedBytes},
		{c.Close, ParkedBytes},
		{c.Close, 0},
		{h.enter("10.0.0.1", "d", 2).Close, ConnectionBytes},
	} {
		noted = 0
		if step.do(); noted != step.want {
			t.Errorf("step %d: %d bytes were noted, want %d", i, noted, step.want)
		}
	}
}

// TestARequestTakesMoreOverAWideConnection since the kernel may keep as much as of a body.
func TestARequestTakesMoreOverAWideConnection(t *testing.T) {
	h := newHouse(t, 100)
	c := h.enter("10.0.0.1", "c", 1)
	for _, want := range []int64{RequestBytes, RequestBytes + UploadBytes, RequestBytes + UploadBytes} {
		q, ok := c.Admit(get)
		if n := h.total() - ConnectionBytes; !ok || n != want {
			t.Errorf("it takes %d bytes, want %d", n, want)
		}
		q.Done()
		c.Widen(nil)
	}
}

// TestTheNumberOfConnectionsIsNoted whenever it changes.
func TestTheNumberOfConnectionsIsNoted(t *testing.T) {
	h := newHouse(t, 2)
	var noted []int
	h.OnOpened(func(n int) { noted = append(noted, n) })
	c := h.enter("10.0.0.1", "c", 1)
	c.Active()
	if _, ok := h.dial("10.0.0.1", "d", 2); ok {
		t.Error("there was memory")
	}
	c.Close()
	c.Close()
	if want := []int{1, 2, 1, 0}; !slices.Equal(noted, want) {
		t.Errorf("%d were noted, want %d", noted, want)
	}
}

// TestAParkedConnectionTakesLess, and all again when it goes on.
func TestAParkedConnectionTakesLess(t *testing.T) {
	h := newHouse(t, 64)
	c := h.enter("10.0.0.1", "c", 1)
	c.Park(ParkedBytes)
	if n := h.total(); n != ParkedBytes {
		t.Errorf("%d bytes are taken while it is parked", n)
	}
	if !c.Unpark(ParkedBytes) || h.total() != ConnectionBytes {
		t.Errorf("%d bytes are taken when it goes on", h.total())
	}
	c.Park(ParkedBytes)
	c.Close()
	if c.Unpark(ParkedBytes) || h.total() != 0 {
		t.Errorf("%d bytes are taken after it was closed", h.total())
	}
}

func (h *house) all() (n [classes]int64) {
	for c := range n {
		n[c] = h.Taken(Class(c))
	}
	return n
}

// TestAllIsGivenBack, whatever is taken, refused and closed in whichever order, and never more
// is taken than there is.
func TestAllIsGivenBack(t *testing.T) {
	body := http.MaxBytesReader(nil, http.NoBody, 1)
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		h := newHouse(t, 40)
		type flow struct {
			*client
			requests []Request
			parked   bool
		}
		var open []*flow
		for now := range time.Duration(400) {
			if c, ok := h.dial(fmt.Sprint("10.0.0.", random.IntN(3)), "c", now); ok {
				open = append(open, &flow{client: c})
			}
			for _, f := range open {
				if f.parked {
					f.parked = random.IntN(2) > 0
					if !f.parked && !f.Unpark(ParkedBytes) {
						f.Close()
					}
					continue
				}
				switch random.IntN(12) {
				case 0:
					f.Head(now, random.IntN(8<<10))
				case 1:
					f.Grow()
				case 2, 3:
					f.Active()
					r := &http.Request{ProtoMajor: 1 + random.IntN(2)}
					if random.IntN(2) > 0 {
						r.Body = body
					}
					if q, ok := f.Admit(r); ok {
						f.requests = append(f.requests, q)
					}
				case 4, 5, 6:
					if n := len(f.requests); n > 0 {
						f.requests[n-1].Done()
						f.requests = f.requests[:n-1]
					} else {
						f.Idle(now)
					}
				case 7:
					f.Close()
				case 8:
					f.Park(ParkedBytes)
					f.parked = true
				}
				if n := h.total(); n > h.size {
					t.Fatalf("seed %d: %d of %d bytes are taken", seed, n, h.size)
				}
			}
		}
		for _, f := range open {
			f.Close()
			for _, q := range f.requests {
				q.Done()
			}
		}
		if got := h.all(); got != [classes]int64{} || len(h.open) > 0 || len(h.peers) > 0 {
			t.Fatalf("seed %d: %v are taken, %d connections and %d addresses are known", seed, got, len(h.open), len(h.peers))
		}
	}
}

// TestConcurrentRequestsGiveAllBack with connections that come, go and give way.
func TestConcurrentRequestsGiveAllBack(t *testing.T) {
	r := New(60 * ConnectionBytes)
	port := r.Port(false)
	body := http.MaxBytesReader(nil, http.NoBody, 1)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for range 500 {
				h := new(closing)
				c, ok := port.Connect(netip.AddrFrom4([4]byte{10, 0, 0, byte(i % 5)}), 1, h)
				if !ok {
					continue
				}
				h.Connection = c
				if c.Head(2, 5<<10) && c.Grow() && c.Active() {
					for range 3 {
						if q, ok := c.Admit(&http.Request{ProtoMajor: 2, Body: body}); ok {
							q.Done()
						}
					}
				}
				c.Idle(3)
				c.Close()
			}
		})
	}
	all.Wait()
	if n := r.total(); n != 0 || len(r.open) > 0 || len(r.peers) > 0 {
		t.Errorf("%d bytes are taken by %d connections of %d addresses", n, len(r.open), len(r.peers))
	}
}

// closing is closed by the one that works with it.
type closing struct{ *Connection }

func (*closing) Pending() bool { return false }
func (*closing) Yield(bool)    {}

// TestARequestTakesNoLockAndAllocatesNothing while enough is left.
func TestARequestTakesNoLockAndAllocatesNothing(t *testing.T) {
	h := newHouse(t, 100)
	c := h.enter("10.0.0.1", "c", 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := testing.AllocsPerRun(100, func() {
		c.Active()
		q, ok := c.Admit(get)
		if !ok {
			t.Fatal("there is no memory")
		}
		q.Done()
		c.Idle(2)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestWhatIsOnlyOfUseTakesHalf(t *testing.T) {
	h := newHouse(t, 10)
	for i := range 6 {
		if ok := h.TakeSpare(Bodies, ConnectionBytes); ok != (i < 5) {
			t.Errorf("the %d. got %v", i+1, ok)
		}
	}
	h.Give(Bodies, 5*ConnectionBytes)
	if n := h.total(); n != 0 {
		t.Errorf("%d bytes are taken", n)
	}
}

func TestRoomTakesAQuarter(t *testing.T) {
	h := newHouse(t, 10)
	for i := range 4 {
		if ok := h.TakeRoom(Bodies, ConnectionBytes); ok != (i < 2) {
			t.Errorf("the %d. got %v", i+1, ok)
		}
	}
	if !h.TakeSpare(Bodies, ConnectionBytes) {
		t.Error("nothing is to spare")
	}
	h.Give(Bodies, 3*ConnectionBytes)
	if n := h.total(); n != 0 {
		t.Errorf("%d bytes are taken", n)
	}
}

func TestTheSizeFollowsFromTheHeap(t *testing.T) {
	const mib = 1 << 20
	for heap, want := range map[int64]int64{
		128 * mib / 100 * 65: 54 * mib,
		512 * mib / 100 * 65: 241 * mib,
		8 * mib:              2 * mib,
		math.MaxInt64:        491 * mib,
	} {
		if got := SizeIn(heap); got/mib != want/mib {
			t.Errorf("in a heap of %d MiB there are %d, want %d", heap/mib, got/mib, want/mib)
		}
	}
}

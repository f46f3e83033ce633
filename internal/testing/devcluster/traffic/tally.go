package traffic

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Tally hears of every request that reached an application. The word is sent
// before the application answers, so that even one that is killed has reported
// everything it served.
type Tally struct {
	// OnArrival, when set before applications report, hears of every request too, with
	// its mark. Calls may come at the same time.
	OnArrival func(pod string, at time.Time, mark string)

	listener net.Listener

	mu   sync.Mutex
	pods map[string]*Series
	open map[net.Conn]bool
	wg   sync.WaitGroup
}

// NewTally listens for applications of this machine until it is closed.
func NewTally() (*Tally, error) { return Listen("127.0.0.1:0") }

// Listen listens for applications at an address until it is closed.
func Listen(address string) (*Tally, error) {
	l, err := net.Listen("tcp", address) //nolint:noctx // returns at once
	if err != nil {
		return nil, err
	}
	t := &Tally{listener: l, pods: map[string]*Series{}, open: map[net.Conn]bool{}}
	t.wg.Go(t.accept)
	return t, nil
}

// Address returns where applications report to.
func (t *Tally) Address() string { return t.listener.Addr().String() }

// Pods returns the names of all pods that ever reported, sorted.
func (t *Tally) Pods() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.pods))
}

// Pod returns what reached one pod.
func (t *Tally) Pod(name string) *Series {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.pods[name]
	if s == nil {
		s = &Series{}
		t.pods[name] = s
	}
	return s
}

// Between returns how many requests reached any pod from one instant to before
// another.
func (t *Tally) Between(from, to time.Time) int64 {
	var sum int64
	for _, name := range t.Pods() {
		sum += t.Pod(name).Between(from, to)
	}
	return sum
}

// Close stops listening.
func (t *Tally) Close() {
	_ = t.listener.Close()
	t.mu.Lock()
	for conn := range t.open {
		_ = conn.Close()
	}
	t.mu.Unlock()
	t.wg.Wait()
}

func (t *Tally) accept() {
	for {
		conn, err := t.listener.Accept()
		if err != nil {
			return // closed
		}
		t.mu.Lock()
		t.open[conn] = true
		t.mu.Unlock()
		t.wg.Go(func() { t.read(conn) })
	}
}

// read reads a pod's name and then, a line each, the instant and the mark of requests.
func (t *Tally) read(conn net.Conn) {
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, conn)
		_ = conn.Close()
	}()
	lines := bufio.NewScanner(conn)
	if !lines.Scan() {
		return
	}
	pod := lines.Text()
	series := t.Pod(pod)
	for lines.Scan() {
		instant, mark, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		micros, err := strconv.ParseInt(instant, 10, 64)
		if err != nil {
			continue
		}
		at := time.UnixMicro(micros)
		series.Add(at)
		if t.OnArrival != nil {
			t.OnArrival(pod, at, mark)
		}
	}
}

// MarkHeader is the header by which the sender of a request recognizes it: the
// application passes on its value, which holds no line break.
const MarkHeader = "X-Mark"

// A Reporter is the application's side of a Tally.
type Reporter struct {
	mu   sync.Mutex
	conn io.WriteCloser
}

// Report connects an application to a tally.
func Report(address, pod string) (*Reporter, error) {
	conn, err := net.Dial("tcp", address) //nolint:noctx // on this machine
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintln(conn, pod)
	return &Reporter{conn: conn}, err
}

// Reached reports that a request with a mark, or an empty one, arrived at an instant.
func (r *Reporter) Reached(at time.Time, mark string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := fmt.Fprintln(r.conn, at.UnixMicro(), mark)
	return err
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestMixedLoadGetsRightAnswers for SOAK, or a moment: a sidecar with a limit, in its container's
// memory, has thousands of connections that ask now and then, and clients that upload, download,
// do both at once, use HTTP/2 and tunnels, and leave. Each answer is compared with what the app
// computes of the request. After the first third of a soak the memory does not grow any more.
func TestMixedLoadGetsRightAnswers(t *testing.T) {
	lasts, idle := 3*time.Second, 200
	if text := os.Getenv("SOAK"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second {
			t.Fatalf("SOAK is %q: write for how long, such as 30m", text)
		}
		lasts, idle = d, 5000
	}
	args, env := serveController(t)
	s := start(t, build(t), len(floods)+1, args, env...)
	ctx, end := context.WithTimeout(t.Context(), lasts)
	defer end()
	k := &soak{program: s, ctx: ctx}
	var clients sync.WaitGroup
	for i := range idle {
		late := time.Duration(i) * min(5*time.Millisecond, lasts/time.Duration(2*idle)) // they come one after the other
		clients.Go(func() { k.idle(t, i, late) })
	}
	for i := range 2 {
		for _, kind := range kinds {
			clients.Go(func() { k.repeat(t, kind, i) })
		}
	}
	memory := k.watch(t, lasts/30)
	clients.Wait()
	for _, kind := range kinds {
		t.Logf("%s: %d", kind.name, kind.done.Load())
		if kind.done.Load() == 0 {
			t.Errorf("%s: none was done", kind.name)
		}
	}
	t.Logf("connections that ask now and then: %d answers", k.answers.Load())
	t.Logf("for want of memory %d connections were closed while idle, and %d requests refused", k.closed.Load(), k.refused.Load())
	if all, few := k.answers.Load(), k.refused.Load()+k.closed.Load(); few > all {
		t.Errorf("%d requests of connections that ask now and then were answered, and %d were not", all, few)
	}
	t.Logf("working set in MiB, every %s: %v", lasts/30, memory)
	s.staysWithin(t)
	if n := len(memory); lasts >= time.Minute && n >= 30 {
		second, last := peakOf(memory[n/3:2*n/3]), peakOf(memory[2*n/3:])
		if last > second+second/10+2 {
			t.Errorf("the memory grew from %d to %d MiB", second, last)
		}
	}
}

func peakOf(all []int64) (most int64) {
	for _, one := range all {
		most = max(most, one)
	}
	return most
}

// A soak is a sidecar under mixed load.
type soak struct {
	*program
	ctx                      context.Context //nolint:containedctx // of all clients
	answers, closed, refused atomic.Int64
}

var (
	errRefused = errors.New("there is no memory for the request")
	errIdle    = errors.New("the connection was closed while idle")
)

// watch notes the working set in MiB until the load ends.
func (k *soak) watch(t *testing.T, every time.Duration) (all []int64) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-k.ctx.Done():
			return all
		case <-tick.C:
		}
		if k.group == nil {
			continue
		}
		n, err := k.group.WorkingSet()
		if err != nil {
			t.Error(err)
		}
		all = append(all, n>>20)
	}
}

// A kind is what a client does, over and over, at its pace.
type kind struct {
	name  string
	http2 bool
	do    func(k *soak, c *http.Client, random *rand.ChaCha8, r *rand.Rand) error
	done  atomic.Int64
}

var kinds = []*kind{
	{name: "downloads", do: download},
	{name: "uploads", do: upload},
	{name: "bodies both ways at once", do: echo},
	{name: "downloads over HTTP/2", http2: true, do: download},
	{name: "uploads over HTTP/2", http2: true, do: upload},
	{name: "bodies both ways at once over HTTP/2", http2: true, do: echo},
	{name: "tunnels", do: tunnel},
	{name: "clients that leave", do: leave},
}

func (k *soak) repeat(t *testing.T, kind *kind, number int) {
	c := &http.Client{Transport: transportOver(kind.http2)}
	defer c.CloseIdleConnections()
	random := rand.NewChaCha8(sha256.Sum256([]byte(kind.name + strconv.Itoa(number))))
	r := rand.New(random)
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-pace.C:
		}
		switch err := kind.do(k, c, random, r); {
		case k.over():
			return
		case errors.Is(err, errRefused):
			k.refused.Add(1)
			continue
		case errors.Is(err, errIdle):
			k.closed.Add(1)
			continue
		case err != nil:
			t.Errorf("%s: %v", kind.name, err)
			return
		}
		kind.done.Add(1)
	}
}

// over reports whether the load has ended. A dial may see its end a little before the context does.
func (k *soak) over() bool {
	end, _ := k.ctx.Deadline()
	return k.ctx.Err() != nil || !time.Now().Before(end)
}

// transportOver speaks HTTP/2 with prior knowledge, or HTTP/1.1.
func transportOver(http2 bool) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	return &http.Transport{Protocols: protocols}
}

// size draws how long a body is: most are short.
func size(r *rand.Rand) int { return r.IntN(1 << r.IntN(19)) }

// ask sends a request for a path and returns the answer, which is 200. errRefused and errIdle say
// that the sidecar was short of memory, which it may be at any time between two requests.
func (k *soak) ask(c *http.Client, path string, body io.Reader) (*http.Response, error) {
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	var reused bool
	traced := httptrace.WithClientTrace(k.ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }})
	r, err := http.NewRequestWithContext(traced, method, "http://"+k.inbound()+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Tenant", path)
	res, err := c.Do(r)
	switch {
	case err != nil && reused:
		return nil, errIdle
	case err != nil:
		return nil, err
	case res.StatusCode == http.StatusServiceUnavailable:
		res.Body.Close()
		return nil, errRefused
	case res.StatusCode != http.StatusOK:
		res.Body.Close()
		return nil, fmt.Errorf("the answer is %s", res.Status)
	}
	return res, nil
}

// compare reads an answer to its end.
func compare(res *http.Response, want []byte) error {
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("the answer of %d bytes is not that of %d bytes which the app gave", len(got), len(want))
	}
	return err
}

func download(k *soak, c *http.Client, _ *rand.ChaCha8, r *rand.Rand) error {
	seed, n := r.Uint64(), size(r)
	res, err := k.ask(c, fmt.Sprintf("/soak/bytes?%d,%d", seed, n), nil)
	if err != nil {
		return err
	}
	return compare(res, drawn(seed, n))
}

// drawn returns bytes that follow from a seed.
func drawn(seed uint64, n int) []byte {
	out := make([]byte, n)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(strconv.FormatUint(seed, 10)))).Read(out)
	return out
}

func upload(k *soak, c *http.Client, random *rand.ChaCha8, r *rand.Rand) error {
	data := make([]byte, size(r))
	_, _ = random.Read(data)
	body := io.Reader(bytes.NewReader(data))
	if r.IntN(2) == 0 {
		body = io.MultiReader(body) // in chunks
	}
	res, err := k.ask(c, "/soak/sum", body)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	return compare(res, []byte(hex.EncodeToString(sum[:])))
}

func echo(k *soak, c *http.Client, random *rand.ChaCha8, r *rand.Rand) error {
	data := make([]byte, size(r))
	_, _ = random.Read(data)
	res, err := k.ask(c, "/soak/echo", io.MultiReader(bytes.NewReader(data)))
	if err != nil {
		return err
	}
	return compare(res, data)
}

func tunnel(k *soak, _ *http.Client, random *rand.ChaCha8, r *rand.Rand) error {
	c, answers, err := k.dial("GET /soak/tunnel HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if err != nil {
		return err
	}
	defer c.Close()
	res, err := http.ReadResponse(answers, nil)
	if err != nil {
		return err
	}
	switch res.StatusCode {
	case http.StatusSwitchingProtocols:
	case http.StatusServiceUnavailable:
		return errRefused
	default:
		return errors.New(res.Status)
	}
	data, got := make([]byte, 1+size(r)), []byte(nil)
	_, _ = random.Read(data)
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(data)
		sent <- err
	}()
	got = make([]byte, len(data))
	if _, err = io.ReadFull(answers, got); err == nil && !bytes.Equal(got, data) {
		err = fmt.Errorf("%d bytes came back as others", len(data))
	}
	c.Close()
	return errors.Join(<-sent, err)
}

// leave closes a connection somewhere in a request or in its answer.
func leave(k *soak, _ *http.Client, _ *rand.ChaCha8, r *rand.Rand) error {
	text := "POST /soak/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("4\r\nabcd\r\n", 1+r.IntN(1000))
	c, answers, err := k.dial(text[:1+r.IntN(len(text))])
	if err != nil {
		return err
	}
	if r.IntN(2) == 0 {
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		_, _ = io.CopyN(io.Discard, answers, int64(r.IntN(1000)))
	}
	return c.Close()
}

// dial connects and sends a text.
func (k *soak) dial(text string) (net.Conn, *bufio.Reader, error) {
	c, err := new(net.Dialer).DialContext(k.ctx, "tcp", k.inbound())
	if err != nil {
		return nil, nil, err
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err = io.WriteString(c, text); err != nil {
		c.Close()
		return nil, nil, err
	}
	return c, bufio.NewReaderSize(c, 256), nil
}

// idle keeps a connection that asks about every ten seconds. The sidecar may close it between two
// requests, never within one.
func (k *soak) idle(t *testing.T, number int, late time.Duration) {
	select {
	case <-time.After(late):
	case <-k.ctx.Done():
	}
	r := rand.New(rand.NewPCG(uint64(number), 1))
	for k.ctx.Err() == nil {
		c, answers, err := k.dial("")
		for n := 0; err == nil && k.ctx.Err() == nil; n++ {
			seed := r.Uint64()
			if _, err = fmt.Fprintf(c, "GET /soak/bytes?%d,100 HTTP/1.1\r\nHost: a\r\nX-Tenant: idle\r\n\r\n", seed); err != nil {
				break
			}
			_ = c.SetDeadline(time.Now().Add(patience))
			if _, err = answers.Peek(1); err != nil {
				break
			}
			var res *http.Response
			res, err = http.ReadResponse(answers, nil)
			switch {
			case err == nil && res.StatusCode == http.StatusOK:
				err = compare(res, drawn(seed, 100))
				k.answers.Add(1)
			case err == nil && res.StatusCode == http.StatusServiceUnavailable:
				k.refused.Add(1)
				_, err = io.Copy(io.Discard, res.Body)
			case err == nil:
				err = errors.New(res.Status)
			}
			if err != nil {
				t.Errorf("answer %d of an idle connection: %v", n, err)
				return
			}
			select {
			case <-time.After(time.Duration(r.Int64N(int64(20 * time.Second)))):
			case <-k.ctx.Done():
			}
		}
		if err != nil && k.ctx.Err() == nil {
			k.closed.Add(1)
		}
		if c != nil {
			c.Close()
		}
	}
}

// soaked answers the requests of a soak.
func soaked(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/soak/bytes":
		var seed uint64
		var n int
		if _, err := fmt.Sscanf(r.URL.RawQuery, "%d,%d", &seed, &n); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = w.Write(drawn(seed, n))
	case "/soak/sum":
		sum := sha256.New()
		if _, err := io.Copy(sum, r.Body); err != nil {
			return
		}
		_, _ = io.WriteString(w, hex.EncodeToString(sum.Sum(nil)))
	case "/soak/echo":
		out := http.NewResponseController(w)
		_ = out.EnableFullDuplex()
		for part := make([]byte, 4<<10); ; {
			n, err := r.Body.Read(part)
			if _, failed := w.Write(part[:n]); failed != nil || err != nil {
				return
			}
			_ = out.Flush()
		}
	case "/soak/tunnel":
		conn, from, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(conn, from)
	}
}

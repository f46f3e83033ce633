package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// lateGrace is the grace period of a rolling update, a third of the time of its slowest requests.
const lateGrace = 500 * time.Millisecond

// TestARollingUpdateGivesRightAnswers: while each of three sidecars is replaced under load, requests take up to
// three times the grace period. Each client gets the app's answer, or sees its connection end.
func TestARollingUpdateGivesRightAnswers(t *testing.T) {
	file, number := build(t), len(floods)+2
	launch := func() *program {
		number++
		return start(t, file, number, []string{"--shutdown-grace-period=" + lateGrace.String()})
	}
	var serving [3]atomic.Pointer[program]
	for i := range serving {
		serving[i].Store(launch())
	}
	ctx, end := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer end()
	var answered, ended [2]atomic.Int64 // over HTTP/1.1 and HTTP/2
	for i := range 64 {
		clients.Go(func() {
			protocol := i % 2
			c := &http.Client{Transport: transportOver(protocol == 1)}
			defer c.CloseIdleConnections()
			for r := rand.New(rand.NewPCG(uint64(i), 1)); ctx.Err() == nil; {
				ok, err := askLate(ctx, c, serving[r.IntN(len(serving))].Load(), r)
				switch {
				case err != nil:
					t.Error(err)
				case ok:
					answered[protocol].Add(1)
				case ctx.Err() == nil:
					ended[protocol].Add(1)
					select { // its port may be closed
					case <-time.After(10 * time.Millisecond):
					case <-ctx.Done():
					}
				}
			}
		})
	}
	for i := range serving {
		for p := range answered {
			enough := answered[p].Load() + 32
			until(t, "no client is answered", func() bool { return answered[p].Load() >= enough })
		}
		next, old := launch(), serving[i].Load()
		if err := old.process.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		serving[i].Store(next)
		select {
		case <-old.ended:
		case <-time.After(patience):
			t.Fatal("a sidecar does not end")
		}
	}
	end()
	clients.Wait()
	for p, name := range []string{"HTTP/1.1", "HTTP/2"} {
		t.Logf("%s: %d requests were answered, of %d the connection ended", name, answered[p].Load(), ended[p].Load())
		if ended[p].Load() == 0 {
			t.Errorf("%s: no request took longer than the grace period", name)
		}
	}
}

// askLate sends a request that the app takes its time for, and reports whether it was answered rightly. The
// connection of any other one has ended.
func askLate(ctx context.Context, c *http.Client, s *program, r *rand.Rand) (ok bool, err error) {
	var body []byte
	method := http.MethodGet
	if r.IntN(2) > 0 {
		method, body = http.MethodPost, drawn(r.Uint64(), r.IntN(64<<10))
	}
	url := fmt.Sprintf("http://%s/late?%d", s.inbound(), r.Int64N(int64(3*lateGrace)))
	q, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	res, err := c.Do(q)
	if err != nil {
		return false, nil
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	switch want := lateAnswer(body); {
	case res.StatusCode != http.StatusOK, err == nil && string(got) != want:
		return false, fmt.Errorf("%s was answered with %s and %q, want %q", method, res.Status, got, want)
	}
	return err == nil, nil
}

func lateAnswer(body []byte) string { return fmt.Sprintf("%x", sha256.Sum256(body)) }

// answerLate is the app's part.
func answerLate(over <-chan struct{}, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	takes, malformed := strconv.ParseInt(r.URL.RawQuery, 10, 64)
	if err != nil || malformed != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	select {
	case <-time.After(time.Duration(takes)):
		_, _ = io.WriteString(w, lateAnswer(body))
	case <-r.Context().Done():
	case <-over:
	}
}

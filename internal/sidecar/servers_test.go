package sidecar

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
)

// dial opens a plain connection, which ends with the test.
func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn.(*net.TCPConn)
}

// say writes to the connection.
func say(t *testing.T, conn net.Conn, what string) {
	t.Helper()
	if _, err := io.WriteString(conn, what); err != nil {
		t.Fatal(err)
	}
}

const (
	plainGet  = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	plainPost = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
)

// TestAClientThatSendsNothingMoreIsAnswered, whether the app answers at once or after the
// client has closed its side, and also when the client broke off a further request.
func TestAClientThatSendsNothingMoreIsAnswered(t *testing.T) {
	closed := make(chan struct{}, 1)
	_, address := inFrontOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/late" {
			<-closed
			select {
			case <-time.After(50 * time.Millisecond): // for the sidecar to see it
			case <-r.Context().Done():
				t.Error("the request was ended")
			}
		}
		_, _ = io.WriteString(w, "hello")
	}))
	lateGet, latePost := strings.Replace(plainGet, "/", "/late", 1), strings.Replace(plainPost, "/", "/late", 1)
	for name, c := range map[string]struct{ request, part string }{
		"GET": {request: plainGet}, "POST": {request: plainPost}, "HTTP/1.0": {request: "GET / HTTP/1.0\r\nHost: a\r\n\r\n"},
		"two": {request: plainGet + plainPost}, "late": {request: lateGet}, "late POST": {request: latePost}, "two, late": {request: plainPost + lateGet},
		"and a part of a request line": {plainPost, "GET /"}, "and a part of a head": {plainGet, plainGet[:20]},
		"and a part of a body":           {plainGet, plainPost[:len(plainPost)-1]},
		"late, a part of a request line": {lateGet, "GET /"}, "late, a part of a head": {latePost, plainGet[:20]},
		"late, a part of a body": {lateGet, plainPost[:len(plainPost)-1]},
	} {
		t.Run(name, func(t *testing.T) {
			request := c.request
			for range 50 {
				conn := dial(t, address)
				say(t, conn, request+c.part)
				_ = conn.CloseWrite()
				late := strings.Contains(request, "/late")
				if late {
					select {
					case closed <- struct{}{}:
					default: // a request that failed before did not take it
					}
				}
				all, err := io.ReadAll(conn)
				if err != nil {
					t.Fatal(err)
				}
				want := strings.Count(request, "Host:")
				if got := strings.Count(string(all), " 200 OK\r\n"); got != want || strings.Count(string(all), "\r\n\r\nhello") != want || !strings.HasPrefix(string(all), "HTTP/1.") {
					t.Fatalf("got %q, want %d answers", all, want)
				}
				if late {
					break
				}
			}
		})
	}
}

// TestAClientThatLeavesEndsItsRequest, before its answer and in the middle of it.
func TestAClientThatLeavesEndsItsRequest(t *testing.T) {
	for name, begun := range map[string]bool{"before the answer": false, "in the middle": true} {
		for method, request := range map[string]string{"GET": plainGet, "POST": plainPost} {
			t.Run(name+", "+method, func(t *testing.T) {
				began, ended := make(chan struct{}), make(chan struct{})
				_, address := inFrontOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					close(began)
					defer close(ended)
					for {
						select {
						case <-r.Context().Done():
							return
						case <-time.After(10 * time.Millisecond):
						}
						if begun {
							_, _ = io.WriteString(w, "a part\n")
							_ = http.NewResponseController(w).Flush()
						}
					}
				}))
				conn := dial(t, address)
				say(t, conn, request)
				<-began
				if begun {
					_, _ = conn.Read(make([]byte, 1))
				}
				conn.Close()
				select {
				case <-ended:
				case <-time.After(patience):
					t.Error("the app still works for it")
				}
			})
		}
	}
}

// TestRequestsCutAtTheEndOfTheGracePeriodAreNotAnswered: no client is to take it for done.
func TestRequestsCutAtTheEndOfTheGracePeriodAreNotAnswered(t *testing.T) {
	overBoth(t, func(t *testing.T, c *http.Client) {
		const requests = 40
		began := make(chan struct{}, requests)
		s, address := inFrontOf(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			began <- struct{}{}
			<-r.Context().Done()
		}))
		var asking sync.WaitGroup
		for i := range requests {
			asking.Go(func() {
				method, body := http.MethodGet, io.Reader(nil)
				if i%2 > 0 {
					method, body = http.MethodPost, strings.NewReader("hi")
				}
				r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address, body)
				if err != nil {
					t.Error(err)
					return
				}
				if res, err := c.Do(r); err == nil {
					res.Body.Close()
					t.Errorf("%s was answered with %s", method, res.Status)
				}
			})
		}
		for range requests {
			<-began
		}
		over, end := context.WithCancel(t.Context())
		end()
		s.drain(over)
		asking.Wait()
	})
}

// TestUploadsArriveWhole to an app that answers before it has read them.
func TestUploadsArriveWhole(t *testing.T) {
	overBoth(t, func(t *testing.T, c *http.Client) {
		_, address := inFrontOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := http.NewResponseController(w)
			_ = answer.EnableFullDuplex()
			w.WriteHeader(http.StatusOK)
			_ = answer.Flush()
			sum := sha256.New()
			n, err := io.Copy(sum, r.Body)
			_, _ = fmt.Fprintf(w, "%d %x %v", n, sum.Sum(nil), err)
		}))
		for _, size := range []int{200 << 10, 400 << 10, 1600 << 10} {
			for name, length := range map[string]int64{"chunked": -1, "Content-Length": int64(size)} {
				t.Run(fmt.Sprintf("%d KiB, %s", size>>10, name), func(t *testing.T) {
					body := []byte(strings.Repeat("0123456789abcdef", size/16))
					from, to := io.Pipe()
					r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address, from)
					if err != nil {
						t.Fatal(err)
					}
					r.ContentLength = length
					res, err := c.Do(r) // the answer begins before anything was sent
					if err != nil {
						t.Fatal(err)
					}
					defer res.Body.Close()
					for rest := body; len(rest) > 0; rest = rest[4<<10:] {
						if _, err := to.Write(rest[:4<<10]); err != nil {
							t.Fatal(err)
						}
					}
					to.Close()
					got, err := io.ReadAll(res.Body)
					if want := fmt.Sprintf("%d %x <nil>", size, sha256.Sum256(body)); string(got) != want || err != nil {
						t.Errorf("the app received %q, %v, want %q", got, err, want)
					}
				})
			}
		}
	})
}

// TestBytesThatTheAppSentBeforeItBrokeOffArrive to the last byte.
func TestBytesThatTheAppSentBeforeItBrokeOffArrive(t *testing.T) {
	overBoth(t, func(t *testing.T, c *http.Client) {
		_, address := inFrontOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			_, _ = io.WriteString(w, strings.Repeat("x", 5000))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}))
		res := ask(t, c, http.MethodGet, "http://"+address, nil)
		if got, err := io.ReadAll(res.Body); len(got) != 5000 || err == nil {
			t.Errorf("got %d bytes and %v, want 5000 and an error", len(got), err)
		}
	})
}

// TestTrailersThatWereNotAnnouncedArrive, but for our own.
func TestTrailersThatWereNotAnnouncedArrive(t *testing.T) {
	seen := make(chan http.Header, 1)
	_, address := inFrontOf(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		seen <- r.Trailer
	}))
	conn := dial(t, address)
	say(t, conn, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 7\r\nX-Weir-Key: k\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v", res, err)
	}
	if got := <-seen; len(got) != 1 || got.Get("X-Sum") != "7" {
		t.Errorf("trailers %v", got)
	}
}

// TestErrorsOfTheClientAreItsOwn: the answer does not blame the app.
func TestErrorsOfTheClientAreItsOwn(t *testing.T) {
	const chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	header := func(n int) string {
		return "GET / HTTP/1.1\r\nHost: a\r\nX-Filler: " + strings.Repeat("x", n-39) + "\r\n\r\n"
	}
	_, address := inFrontOf(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	for name, tc := range map[string]struct {
		request string
		want    int
	}{
		"a trailer that frames":              {chunked + "0\r\nContent-Length: 1\r\n\r\n", 400},
		"a trailer that addresses":           {chunked + "0\r\nHost: b\r\n\r\n", 400},
		"a folded trailer":                   {chunked + "0\r\nX-A: 1\r\n b\r\n\r\n", 400},
		"a trailer without a name":           {chunked + "0\r\n: b\r\n\r\n", 400},
		"a bare LF in a trailer":             {chunked + "0\r\nX-A: 1\n\r\n", 400},
		"a bare LF behind the last chunk":    {chunked + "0\r\n\n", 400},
		"an extension of a chunk, 9000 long": {chunked + "2;x=" + strings.Repeat("y", 9000) + "\r\nhi\r\n0\r\n\r\n", 400},
		"an unknown expectation":             {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: x\r\n\r\nhi", 417},
		"one beside a known one":             {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: y 100-continue\r\n\r\nhi", 417},
		"two":                                {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\nExpect: x\r\n\r\nhi", 417},
		"a header of 32 KiB":                 {header(32 << 10), 200},
		"a header of 37 KiB":                 {header(37 << 10), 431},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, address)
			say(t, conn, tc.request)
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != tc.want {
				t.Errorf("got %s, want %d", res.Status, tc.want)
			}
		})
	}
}

// TestBodiesGoBothWaysAtOnce over HTTP/1.1, where the client sends a part when it has read
// the answer to the one before.
// TestAStreamThatIsResetBeforeItIsBegunReachesNothing: nothing waits for it, and it takes no
// unit of a limit.
func TestAStreamThatIsResetBeforeItIsBegunReachesNothing(t *testing.T) {
	reached := false
	s, err := listen(t.Context(), "127.0.0.1:0", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }),
		prometheus.NewCounter(prometheus.CounterOpts{Name: "malformed"}), slog.New(slog.DiscardHandler), membudget.New(1<<40).Port(false))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for _, tc := range []struct {
		major   int
		ended   bool
		reaches bool
	}{{2, true, false}, {2, false, true}, {1, true, true}} { // of HTTP/1.1 the client may only have closed its side
		ctx, end := context.WithCancel(t.Context())
		if tc.ended {
			end()
		}
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		r.ProtoMajor = tc.major
		reached = false
		func() {
			defer func() {
				reason, _ := recover().(error)
				if errors.Is(reason, http.ErrAbortHandler) == tc.reaches {
					t.Errorf("%+v: ended by %v", tc, reason)
				}
			}()
			s.http.Handler.ServeHTTP(httptest.NewRecorder(), r)
		}()
		if reached != tc.reaches {
			t.Errorf("%+v: reached: %v", tc, reached)
		}
		end()
	}
}

func TestBodiesGoBothWaysAtOnce(t *testing.T) {
	_, address := inFrontOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := http.NewResponseController(w)
		_ = answer.EnableFullDuplex()
		lines := bufio.NewReader(r.Body)
		for {
			line, err := lines.ReadString('\n')
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, line)
			_ = answer.Flush()
		}
	}))
	from, to := io.Pipe()
	go func() { _, _ = io.WriteString(to, "0\n") }()
	res := ask(t, http.DefaultClient, http.MethodPost, "http://"+address, from)
	lines := bufio.NewReader(res.Body)
	for i := range 50 {
		if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintln(i) {
			t.Fatalf("heard %q, %v", line, err)
		}
		if _, err := fmt.Fprintln(to, i+1); err != nil {
			t.Fatal(err)
		}
	}
	to.Close()
	if rest, err := io.ReadAll(lines); string(rest) != "50\n" || err != nil {
		t.Errorf("at the end heard %q, %v", rest, err)
	}
}

// TestARequestWithoutRoomIsAnswered and not forwarded, in the protocol of its client. Over
// HTTP/2 the connection goes on, for the other streams.
func TestARequestWithoutRoomIsAnswered(t *testing.T) {
	overBoth(t, func(t *testing.T, c *http.Client) {
		http2 := c.Transport.(*http.Transport).Protocols.UnencryptedHTTP2() //nolint:forcetypeassert // overBoth makes it
		size := int64(membudget.ConnectionBytes)
		if http2 {
			size += membudget.HTTP2Bytes
		}
		for name, header := range map[string][]string{"plain": nil, "gRPC": {"Content-Type", "application/grpc"}} {
			memory := membudget.New(size + size/4) // an address may have four fifths of it
			_, address := inFrontOfIn(t, "127.0.0.1:1", unlimited{}, metrics.New(new(process)), memory)
			res := ask(t, c, http.MethodPost, "http://"+address+"/", strings.NewReader(strings.Repeat("x", 1<<20)), header...)
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			switch {
			case res.Header.Get("Retry-After") == "", res.Close == http2:
				t.Errorf("%s: the answer has %v, closes: %v", name, res.Header, res.Close)
			case name == "gRPC" && res.Header.Get("Grpc-Status") != "14", name == "plain" && (res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "no memory")):
				t.Errorf("%s: got %s, %v, %s", name, res.Status, res.Header, body)
			}
			if n := memory.Refused(membudget.Requests); n != 1 {
				t.Errorf("%s: %d were counted", name, n)
			}
			eventually(t, "not all is given back", func() bool {
				c.CloseIdleConnections() // one whose upload has not ended is not idle yet
				return memory.Taken(membudget.Connections) == 0
			})
		}
	})
}

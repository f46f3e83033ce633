package conformance

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds all that a command, its app or the suite waits for.
const patience = 20 * time.Second

// A curlApp answers requests as their paths say, and notes what it saw of each.
type curlApp struct {
	address string
	read    chan struct{} // it has read a part of a body
	shown   chan struct{} // curl has printed a line

	mu      sync.Mutex
	changed *sync.Cond
	serving int
	seen    []sight
}

// startCurlApp starts one that serves HTTP/1 and HTTP/2 until the test ends.
func startCurlApp(t *testing.T) *curlApp {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &curlApp{address: listener.Addr().String(), read: make(chan struct{}, 64), shown: make(chan struct{}, 64)}
	a.changed = sync.NewCond(&a.mu)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: a, Protocols: protocols, DisableGeneralOptionsHandler: true, ReadHeaderTimeout: patience}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the app ended with %v", err)
		}
	})
	return a
}

func (a *curlApp) note(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	a.changed.Broadcast()
}

// take returns what it saw since the last call, once no request is under way and it has seen
// that many, or when ctx is done.
func (a *curlApp) take(ctx context.Context, want int) ([]sight, error) {
	defer context.AfterFunc(ctx, func() { a.note(func() {}) })()
	a.mu.Lock()
	defer a.mu.Unlock()
	for (a.serving > 0 || len(a.seen) < want) && ctx.Err() == nil {
		a.changed.Wait()
	}
	seen := a.seen
	a.seen = nil
	if a.serving > 0 {
		return seen, fmt.Errorf("%d requests do not end at the app within %v of their client", a.serving, patience)
	}
	return seen, nil
}

// ServeHTTP answers with what the first word of the path names, by default with the sum of
// the body.
func (a *curlApp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := sightOf(r)
	a.note(func() { a.serving++ })
	defer a.note(func() {
		a.serving--
		a.seen = append(a.seen, s)
	})
	word, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if act, ok := curlAnswers[word]; ok {
		act(a, w, r, rest, &s)
		return
	}
	s.take(r)
	_, _ = fmt.Fprintf(w, "received %s\n", s.body)
}

// numbered is a body in which every line differs.
var numbered = func() []byte {
	var b bytes.Buffer
	for i := range 100_000 / 8 {
		fmt.Fprintf(&b, "%07d\n", i)
	}
	return b.Bytes()
}()

const steps = 5 // of an exchange in which each side waits for the other's last part

// An answer of a curlApp. rest is what follows the word in the path.
type curlAnswer func(a *curlApp, w http.ResponseWriter, r *http.Request, rest string, s *sight)

var curlAnswers = map[string]curlAnswer{
	"file": func(_ *curlApp, w http.ResponseWriter, r *http.Request, _ string, _ *sight) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("ETag", `"v1"`)
		http.ServeContent(w, r, "", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), bytes.NewReader(numbered))
	},
	"large": func(_ *curlApp, w http.ResponseWriter, _ *http.Request, _ string, _ *sight) {
		for range 80 {
			_, _ = w.Write(numbered)
		}
	},
	"gzip": func(_ *curlApp, w http.ResponseWriter, r *http.Request, _ string, _ *sight) {
		w.Header().Set("Vary", "Accept-Encoding")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			_, _ = w.Write(numbered)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		_, _ = packed.Write(numbered)
		_ = packed.Close()
	},
	"chunks": func(_ *curlApp, w http.ResponseWriter, _ *http.Request, _ string, _ *sight) {
		for i := range steps {
			_, _ = fmt.Fprintf(w, "chunk %d\n", i)
			_ = http.NewResponseController(w).Flush()
		}
	},
	"trailers": func(_ *curlApp, w http.ResponseWriter, r *http.Request, _ string, s *sight) {
		s.take(r)
		w.Header().Set("Trailer", "X-Sum, X-Empty")
		_, _ = io.WriteString(w, s.body)
		_ = http.NewResponseController(w).Flush()
		w.Header().Set("X-Sum", s.body)
		w.Header().Set("X-Empty", "")
	},
	"status": func(_ *curlApp, w http.ResponseWriter, r *http.Request, rest string, s *sight) {
		s.take(r)
		code, _ := strconv.Atoi(rest)
		w.Header().Set("ETag", `"v1"`)
		w.WriteHeader(code)
		if code >= 200 && code != http.StatusNoContent && code != http.StatusNotModified {
			_, _ = fmt.Fprintf(w, "status %d\n", code)
		}
	},
	"redirect": func(_ *curlApp, w http.ResponseWriter, _ *http.Request, rest string, _ *sight) {
		code, err := strconv.Atoi(rest)
		to := "/redirected"
		if err != nil {
			code, to = http.StatusFound, "/redirect/again"
		}
		w.Header().Set("Location", to)
		w.WriteHeader(code)
	},
	"early": func(_ *curlApp, w http.ResponseWriter, _ *http.Request, _ string, _ *sight) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = io.WriteString(w, "too large\n")
	},
	"hasty": func(_ *curlApp, w http.ResponseWriter, r *http.Request, _ string, s *sight) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, "before the body\n")
		_ = http.NewResponseController(w).Flush()
		s.take(r)
		_, _ = io.WriteString(w, s.body)
	},
	"hints": func(_ *curlApp, w http.ResponseWriter, _ *http.Request, _ string, _ *sight) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "hinted\n")
	},
	"cookie": func(_ *curlApp, w http.ResponseWriter, _ *http.Request, _ string, _ *sight) {
		w.Header().Add("Set-Cookie", "a=b; Path=/")
		w.Header().Add("Set-Cookie", "c=d; Path=/; HttpOnly")
		_, _ = io.WriteString(w, "cookies\n")
	},
	"auth": func(_ *curlApp, w http.ResponseWriter, r *http.Request, _ string, s *sight) {
		s.take(r)
		if r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="app"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = io.WriteString(w, s.body)
	},
	"form":   (*curlApp).form,
	"hang":   (*curlApp).hang,
	"silent": (*curlApp).silent,
	"steps":  (*curlApp).steps,
	"takes":  (*curlApp).takes,
	"ignore": (*curlApp).ignore,
	"raw":    (*curlApp).raw,
}

// form notes the parts of a form: what divides them is another one each time.
func (*curlApp) form(w http.ResponseWriter, r *http.Request, _ string, s *sight) {
	parts, err := r.MultipartReader()
	s.fields.Set("Content-Type", strings.Split(s.fields.Get("Content-Type"), ";")[0])
	s.body, s.length = "", 0
	for err == nil {
		part, next := parts.NextPart()
		if err = next; err == nil {
			s.body += fmt.Sprintf("%q %q %s; ", part.FormName(), part.FileName(), sum(part))
		}
	}
	if !errors.Is(err, io.EOF) {
		s.body += "cut"
	}
	_, _ = io.WriteString(w, s.body)
}

// hang sends parts until the client has left.
func (*curlApp) hang(w http.ResponseWriter, r *http.Request, _ string, s *sight) {
	next, late := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer next.Stop()
	for i := 0; ; i++ {
		_, _ = fmt.Fprintf(w, "%07d\n", i)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-next.C:
		case <-r.Context().Done():
			s.end = "its client left"
			return
		case <-late:
			s.end = "its client stayed"
			return
		}
	}
}

// silent answers nothing until the client has left.
func (*curlApp) silent(_ http.ResponseWriter, r *http.Request, _ string, s *sight) {
	select {
	case <-r.Context().Done():
		s.end = "its client left"
	case <-time.After(patience):
		s.end = "its client stayed"
	}
}

// steps sends each part when curl has printed the one before.
func (a *curlApp) steps(w http.ResponseWriter, r *http.Request, _ string, s *sight) {
	for i := range steps {
		_, _ = fmt.Fprintf(w, "part %d\n", i)
		_ = http.NewResponseController(w).Flush()
		s.await(r.Context(), a.shown)
	}
}

// takes reads a body whose next part is sent when it has read the one before.
func (a *curlApp) takes(w http.ResponseWriter, r *http.Request, _ string, s *sight) {
	part := make([]byte, len("part 0\n"))
	for range steps {
		if _, err := io.ReadFull(r.Body, part); err != nil {
			s.end = err.Error()
		}
		a.read <- struct{}{}
	}
	s.take(r)
	_, _ = io.WriteString(w, s.body)
}

// ignore reads the body, and does not heed that the client waits for a word.
func (*curlApp) ignore(w http.ResponseWriter, r *http.Request, _ string, s *sight) {
	conn, both, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.end = err.Error()
		return
	}
	defer conn.Close()
	s.body = sum(io.LimitReader(both, r.ContentLength))
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n")
}

// raw sends bytes and closes the connection.
func (*curlApp) raw(w http.ResponseWriter, _ *http.Request, rest string, s *sight) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.end = err.Error()
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, rawAnswers[rest])
}

// rawAnswers are those that net/http would not send.
var rawAnswers = map[string]string{
	"nothing":      "",
	"http09":       "no status line\n",
	"until-closed": "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nuntil it is closed\n",
	"1.0":          "HTTP/1.0 200 Fine\r\nContent-Type: text/plain\r\n\r\nuntil it is closed\n",
	"extensions":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n1;c=\"d;e\"\r\n\n\r\n0;f\r\n\r\n",
	"cut-length":   "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ntoo short\n",
	"cut-chunks":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	"cut-chunk":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\nhello",
	"cut-head":     "HTTP/1.1 200 OK\r\nContent-Le",
	"two-lengths":  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello\n",
	"no-length":    "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
	"reason":       "HTTP/1.1 299 Something Else\r\nContent-Length: 0\r\n\r\n",
	"no-reason":    "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n",
	"two-words":    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n",
}

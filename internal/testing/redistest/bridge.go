package redistest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	goredis "github.com/redis/go-redis/v9"
)

// A Bridge serves a server over HTTP, by the REST API that Upstash documents: one command
// at /, several at /pipeline.
type Bridge struct {
	URL, Token string

	client *goredis.Client

	mu       sync.Mutex
	requests int
	instead  http.HandlerFunc
	spoil    Spoiler
}

// A Spoiler answers what has been carried out, in the place of the bridge, which would
// have answered a body.
type Spoiler func(w http.ResponseWriter, r *http.Request, body []byte)

// StartBridge serves the server over HTTP until the test ends.
func (s *Server) StartBridge() *Bridge {
	s.t.Helper()
	b := &Bridge{Token: "AXnA_token+of=a/test", client: goredis.NewClient(&goredis.Options{
		Addr: s.Addr, Protocol: 2, MaxRetries: -1, DialerRetries: 1, // without maps, as the service answers
	})}
	server := httptest.NewServer(b)
	s.t.Cleanup(func() { server.Close(); _ = b.client.Close() })
	b.URL = server.URL
	return b
}

// Instead has requests answered by h, before anything is carried out; nil ends that.
func (b *Bridge) Instead(h http.HandlerFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.instead = h
}

// Spoil has requests answered by f, once their commands were carried out; nil ends that.
func (b *Bridge) Spoil(f Spoiler) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spoil = f
}

// Requests returns how many requests have come.
func (b *Bridge) Requests() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests
}

// ServeHTTP implements http.Handler.
func (b *Bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.requests++
	instead, spoil := b.instead, b.spoil
	b.mu.Unlock()
	if instead != nil {
		instead(w, r)
		return
	}
	status, body := b.answer(r)
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // it has only what was decoded
	}
	if spoil != nil {
		spoil(w, r, text)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client may be gone
}

type answer map[string]any

func refusal(text string) answer { return answer{"error": text} }

// answer carries out the commands of a request.
func (b *Bridge) answer(r *http.Request) (status int, body any) {
	if r.Method != http.MethodPost {
		return http.StatusMethodNotAllowed, refusal("ERR method not allowed")
	}
	if r.Header.Get("Authorization") != "Bearer "+b.Token {
		return http.StatusUnauthorized, refusal("WRONGPASS invalid or missing auth token")
	}
	encoded := r.Header.Get("Upstash-Encoding") == "base64"
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return http.StatusBadRequest, refusal("ERR " + err.Error())
	}
	numbers := json.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber()
	switch r.URL.Path {
	case "/":
		var command []any
		if err := numbers.Decode(&command); err != nil {
			return http.StatusBadRequest, refusal("ERR " + err.Error())
		}
		a, err := b.do(r, command, encoded)
		if err != nil {
			return http.StatusInternalServerError, refusal("ERR " + err.Error())
		}
		if _, failed := a["error"]; failed {
			return http.StatusBadRequest, a
		}
		return http.StatusOK, a
	case "/pipeline":
		var commands [][]any
		if err := numbers.Decode(&commands); err != nil {
			return http.StatusBadRequest, refusal("ERR " + err.Error())
		}
		answers := make([]answer, len(commands))
		for i, command := range commands {
			var err error
			if answers[i], err = b.do(r, command, encoded); err != nil {
				return http.StatusInternalServerError, refusal("ERR " + err.Error())
			}
		}
		return http.StatusOK, answers
	default:
		return http.StatusNotFound, refusal("ERR no such path")
	}
}

// do runs one command. The error is of a server that did not answer.
func (b *Bridge) do(r *http.Request, command []any, encoded bool) (answer, error) {
	for i, word := range command {
		if number, ok := word.(json.Number); ok {
			command[i] = number.String()
		}
	}
	result, err := b.client.Do(r.Context(), command...).Result()
	if _, replied := err.(goredis.Error); replied && !errors.Is(err, goredis.Nil) { //nolint:errorlint // a reply is not wrapped
		return refusal(err.Error()), nil
	}
	if err != nil && !errors.Is(err, goredis.Nil) {
		return nil, err
	}
	return answer{"result": shown(result, encoded)}, nil
}

// shown returns a reply as it is sent.
func shown(reply any, encoded bool) any {
	switch v := reply.(type) {
	case string:
		if !encoded || v == "OK" {
			return string(bytes.ToValidUTF8([]byte(v), []byte("\uFFFD")))
		}
		return base64.StdEncoding.EncodeToString([]byte(v))
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = shown(item, encoded)
		}
		return list
	default:
		return v
	}
}

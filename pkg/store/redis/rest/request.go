package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/weir-dev/weir/pkg/store"
)

// maxAnswer bounds how many bytes of an answer are read. The longest one is a list of a
// thousand keys.
const maxAnswer = 4 << 20

// send sends commands in one request and returns the replies in the protocol of Redis. The
// error has a *store.Failure unless that is what store.Unreached finds.
func (c *Client) send(ctx context.Context, commands [][]string) ([]byte, error) {
	request, err := c.request(ctx, commands)
	if err != nil {
		return nil, err
	}
	response, err := c.transport.RoundTrip(request) // which follows no redirect
	if err != nil {
		return nil, unreached(err)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, unreached(err)
	}
	if len(body) > maxAnswer {
		return nil, &store.Failure{Why: fmt.Sprintf("its answer is longer than %d bytes: %s", maxAnswer, notAPI)}
	}
	if response.StatusCode != http.StatusOK {
		return failed(response.StatusCode, body, len(commands))
	}
	return replies(body, len(commands))
}

func (c *Client) request(ctx context.Context, commands [][]string) (*http.Request, error) {
	to, content := c.many, any(commands)
	if len(commands) == 1 {
		to, content = c.one, commands[0]
	}
	var body bytes.Buffer
	text := json.NewEncoder(&body)
	text.SetEscapeHTML(false) // scripts have many of < and >
	if err := text.Encode(content); err != nil {
		return nil, fmt.Errorf("encode commands: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, &body)
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	request.Header.Set("Authorization", c.token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Upstash-Encoding", "base64")
	request.Header.Set("User-Agent", "weir")
	return request, nil
}

const (
	notAPI   = "see that the URL is that of a Redis over HTTP"
	noAnswer = "it does not answer as Redis over HTTP does: " + notAPI
)

// unreached returns the error of a request that has no answer, or not all of it.
func unreached(err error) error {
	if store.Unreached(err) != nil {
		return err
	}
	return &store.Failure{Why: noAnswer, Cause: err}
}

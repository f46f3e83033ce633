package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
)

// checkPort is where the sidecar of a pod answers on its loopback interface, with the
// configuration in force and with what is left of its limits. No other pod reaches it.
const checkPort = 15010

// Bounds of questions and answers.
const (
	mostQuestions = 16       // of one peek
	mostBytes     = 64 << 20 // of an answer
)

// A sidecar is asked over HTTP.
type sidecar struct{ *http.Client }

// sidecarConfig is what is read of its configuration.
type sidecarConfig struct {
	Mode     string          `json:"mode"`
	Pools    []sidecarPool   `json:"pools"`
	Snapshot json.RawMessage `json:"snapshot"`
}

// A sidecarPool is a pool at this moment.
type sidecarPool struct {
	Name     string `json:"name"`
	Share    int64  `json:"share"`
	Ceiling  int64  `json:"ceiling"`
	InFlight int64  `json:"inFlight"`
}

// A question is about one counter.
type question struct {
	Policy string   `json:"policy"`
	Limit  string   `json:"limit"`
	Key    []string `json:"key,omitempty"`
	Tenant string   `json:"tenant,omitempty"`
	Cost   int64    `json:"cost"`
}

// A peeked is the answer: how a request of that cost would fare.
type peeked struct {
	Allowed      bool   `json:"allowed"`
	Limit        int64  `json:"limit"`
	Remaining    int64  `json:"remaining"`
	ResetAfterMs int64  `json:"resetAfterMs"`
	RetryAfterMs int64  `json:"retryAfterMs"`
	Source       string `json:"source"`
	Reason       string `json:"reason"`
	Unread       string `json:"unread"`
	Shared       bool   `json:"shared"`
	Shadow       bool   `json:"shadow"`
}

// config returns the configuration in force.
func (s sidecar) config(ctx context.Context) (*sidecarConfig, error) {
	c := &sidecarConfig{}
	return c, s.ask(ctx, http.MethodGet, "/debug/config", nil, c)
}

// peek returns an answer to each question. It takes nothing.
func (s sidecar) peek(ctx context.Context, questions []question) ([]peeked, error) {
	var all []peeked
	for some := range slices.Chunk(questions, mostQuestions) {
		var answer struct {
			Limits []peeked `json:"limits"`
		}
		body, err := json.Marshal(map[string]any{"limits": some})
		if err == nil {
			err = s.ask(ctx, http.MethodPost, "/v1/peek", body, &answer)
		}
		if err != nil {
			return nil, err
		}
		if len(answer.Limits) != len(some) {
			return nil, fmt.Errorf("the sidecar answers about %d limits, and was asked about %d", len(answer.Limits), len(some))
		}
		all = append(all, answer.Limits...)
	}
	return all, nil
}

func (s sidecar) ask(ctx context.Context, method, path string, body []byte, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost:"+strconv.Itoa(checkPort)+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	w, err := s.Do(r)
	if err != nil {
		return err
	}
	defer w.Body.Close()
	text, err := io.ReadAll(io.LimitReader(w.Body, mostBytes))
	if err != nil {
		return err
	}
	if w.StatusCode != http.StatusOK {
		var problem struct {
			Detail string `json:"detail"`
		}
		if json.Unmarshal(text, &problem) != nil || problem.Detail == "" {
			return fmt.Errorf("%s: the sidecar answers %s", path, w.Status)
		}
		return fmt.Errorf("%s: the sidecar answers %s: %s", path, w.Status, problem.Detail)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return errors.Join(fmt.Errorf("%s: the answer cannot be read: use the plugin of the sidecar's version", path), err)
	}
	return nil
}

package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// A try is a request, and the limits that are expected to count it.
type try struct {
	Request string            `json:"request"` // METHOD TARGET
	Headers map[string]string `json:"headers,omitempty"`
	Expect  *expectation      `json:"expect,omitempty"`
}

type expectation struct {
	Limits []string `json:"limits"` // that count the request, in any order
}

// readTries returns the requests of the flags, and then those of the file.
func readTries(lines, headers []string, file string) ([]try, error) {
	fields := make(map[string]string)
	for _, h := range headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("-H is %q: use 'NAME: VALUE'", h)
		}
		fields[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	if len(headers) > 0 && len(lines) == 0 {
		return nil, errors.New("-H is of a --request, and there is none: add one, or use headers in the file of --requests")
	}
	var tries []try
	for _, line := range lines {
		tries = append(tries, try{Request: line, Headers: fields})
	}
	if file == "" {
		return tries, nil
	}
	text, err := os.ReadFile(file) //nolint:gosec // the user names it
	if err != nil {
		return nil, fmt.Errorf("--requests: %w", err)
	}
	var more []try
	if err := yaml.UnmarshalStrict(text, &more); err != nil {
		return nil, fmt.Errorf("--requests: %s: %w; use a list of {request, headers, expect: {limits}}", file, err)
	}
	if len(more) == 0 {
		return nil, fmt.Errorf("--requests: %s has no requests: add one", file)
	}
	return append(tries, more...), nil
}

// http returns the request as the sidecar gets it.
func (t *try) http(ctx context.Context, client string) (*http.Request, error) {
	method, target, _ := strings.Cut(t.Request, " ")
	if !strings.HasPrefix(target, "/") {
		return nil, fmt.Errorf("request %q: use 'METHOD TARGET', such as 'GET /x?y=1'", t.Request)
	}
	r, err := http.NewRequestWithContext(ctx, method, target, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("request %q: %w", t.Request, err)
	}
	r.RemoteAddr = net.JoinHostPort(client, "1024")
	for name, value := range t.Headers {
		if strings.EqualFold(name, "host") {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	return r, nil
}

// judgeAll returns a row for each request and limit.
func judgeAll(ctx context.Context, set *policy.Set, tries []try, client string) ([]testRow, error) {
	rows := []testRow{}
	for i := range tries {
		r, err := tries[i].http(ctx, client)
		if err != nil {
			return nil, err
		}
		request := policy.NewRequest(r)
		for _, l := range set.Limits {
			row := testRow{Request: tries[i].Request, Policy: l.Policy.Name, Limit: l.Limit.Name, try: i}
			row.Result, row.Value, row.Hash, row.Cost = count(l, &request)
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// count says what a limit makes of a request. Only a request that is counted has the rest.
func count(l *policy.CompiledLimit, r *policy.Request) (result string, value *string, hash string, cost *int64) {
	if !l.Matches(r) {
		return "unmatched", nil, "", nil
	}
	v, outcome, _ := l.Value(r)
	switch outcome {
	case policy.Skipped:
		return "skipped", nil, "", nil
	case policy.Rejected:
		return "rejected", nil, "", nil
	case policy.Counted:
	}
	if v == policy.MissingValue() {
		return "counted", new("(missing)"), store.HashValue(v), new(l.Cost(r))
	}
	if v == "" { // of a limit without a key, whose one counter has no hash
		return "counted", nil, "", new(l.Cost(r))
	}
	return "counted", &v, store.HashValue(v), new(l.Cost(r))
}

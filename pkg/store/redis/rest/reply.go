package rest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/pkg/store"
)

// An answer is that to one command.
type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *string         `json:"error"`
}

// replies returns the answers to n commands in the protocol of Redis.
func replies(body []byte, n int) ([]byte, error) {
	answers := make([]answer, 1)
	into := any(&answers[0])
	if n > 1 {
		into = &answers
	}
	if err := json.Unmarshal(body, into); err != nil {
		return nil, &store.Failure{Why: noAnswer, Cause: err}
	}
	if len(answers) != n {
		return nil, &store.Failure{Why: noAnswer, Cause: fmt.Errorf("%d answers to %d commands", len(answers), n)}
	}
	var out []byte
	for _, a := range answers {
		if a.Error != nil {
			out = appendError(out, *a.Error)
			continue
		}
		var err error
		if out, err = appendResult(out, a.Result); err != nil {
			return nil, &store.Failure{Why: noAnswer, Cause: err}
		}
	}
	return out, nil
}

// appendResult appends what a command returned.
func appendResult(out []byte, result json.RawMessage) ([]byte, error) {
	numbers := json.NewDecoder(bytes.NewReader(result))
	numbers.UseNumber() // they have 64 bits
	var value any
	if err := numbers.Decode(&value); err != nil {
		return nil, fmt.Errorf("decode a result: %w", err)
	}
	return appendValue(out, value)
}

func appendValue(out []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(out, "$-1\r\n"...), nil
	case json.Number:
		n, err := strconv.ParseInt(v.String(), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("a result is the number %s, which is not an integer of 64 bits", v)
		}
		return append(strconv.AppendInt(append(out, ':'), n, 10), "\r\n"...), nil
	case string:
		return appendText(out, v)
	case []any:
		out = append(strconv.AppendInt(append(out, '*'), int64(len(v)), 10), "\r\n"...)
		var err error
		for _, item := range v {
			if out, err = appendValue(out, item); err != nil {
				return nil, err
			}
		}
		return out, nil
	default:
		return nil, fmt.Errorf("a result is of type %T", value)
	}
}

// appendText appends a string that is in base64, unless it is OK.
func appendText(out []byte, text string) ([]byte, error) {
	if text == "OK" {
		return append(out, "+OK\r\n"...), nil
	}
	size := base64.StdEncoding.DecodedLen(len(text))
	decoded, err := base64.StdEncoding.AppendDecode(make([]byte, 0, size), []byte(text))
	if err != nil {
		return nil, fmt.Errorf("a result is not in base64: %w", err)
	}
	out = append(strconv.AppendInt(append(out, '$'), int64(len(decoded)), 10), "\r\n"...)
	return append(append(out, decoded...), "\r\n"...), nil
}

// appendError appends an error, in one line.
func appendError(out []byte, text string) []byte {
	return append(append(append(out, '-'), strings.NewReplacer("\r", " ", "\n", " ").Replace(text)...), "\r\n"...)
}

// failed returns the replies to n commands that were refused together, or why there are
// none.
func failed(status int, body []byte, n int) ([]byte, error) {
	var a answer
	_ = json.Unmarshal(body, &a) // there may be none
	cause := fmt.Errorf("status %d", status)
	if a.Error != nil {
		cause = fmt.Errorf("status %d, %.200q", status, *a.Error)
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return nil, &store.Failure{Why: "it refuses the token: put the REST token of the database, not one that may only read, into rest-token of the Secret", Cause: cause}
	case status == http.StatusBadRequest && a.Error != nil:
		var out []byte
		for range n {
			out = appendError(out, *a.Error)
		}
		return out, nil
	case status == http.StatusTooManyRequests:
		return nil, &store.Failure{Why: "it takes no more requests for now (status 429): let the database have a larger quota, or send fewer by larger leases", Cause: cause}
	case status >= 300 && status < 400:
		return nil, &store.Failure{Why: fmt.Sprintf("it redirects (status %d), which is not followed: write the URL that it leads to", status), Cause: cause}
	case status >= 500:
		return nil, &store.Failure{Why: fmt.Sprintf("it is out of order (status %d): see what the service says of itself", status), Cause: cause}
	default:
		return nil, &store.Failure{Why: fmt.Sprintf("it answers with status %d: %s", status, notAPI), Cause: cause}
	}
}

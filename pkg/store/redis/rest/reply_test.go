package rest

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/store"
)

func TestReplies(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		n    int
		want string // "" for an error
	}{
		"nothing":            {`{"result": null}`, 1, "$-1\r\n"},
		"an integer":         {`{"result": 9007199254740993}`, 1, ":9007199254740993\r\n"},
		"a negative one":     {`{"result": -1}`, 1, ":-1\r\n"},
		"OK":                 {`{"result": "OK"}`, 1, "+OK\r\n"},
		"the value OK":       {`{"result": "T0s="}`, 1, "$2\r\nOK\r\n"},
		"bytes":              {`{"result": "AP8="}`, 1, "$2\r\n\x00\xff\r\n"},
		"an empty string":    {`{"result": ""}`, 1, "$0\r\n\r\n"},
		"a list":             {`{"result": [1, null, ["YQ=="], []]}`, 1, "*4\r\n:1\r\n$-1\r\n*1\r\n$1\r\na\r\n*0\r\n"},
		"an error":           {`{"error": "ERR a\r\nb"}`, 1, "-ERR a  b\r\n"},
		"some":               {`[{"result": 1}, {"error": "ERR a"}]`, 2, ":1\r\n-ERR a\r\n"},
		"fewer":              {`[{"result": 1}]`, 2, ""},
		"more":               {`[{"result": 1}, {"result": 1}]`, 3, ""},
		"one for two":        {`{"result": 1}`, 2, ""},
		"two for one":        {`[{"result": 1}]`, 1, ""},
		"neither":            {`{}`, 1, ""},
		"a fraction":         {`{"result": 1.5}`, 1, ""},
		"too large a number": {`{"result": 9223372036854775808}`, 1, ""},
		"a map":              {`{"result": {"a": 1}}`, 1, ""},
		"a truth":            {`{"result": true}`, 1, ""},
		"no base64":          {`{"result": "a"}`, 1, ""},
		"half":               {`{"result": [1`, 1, ""},
		"two texts":          {`{"result": 1}{"result": 2}`, 1, ""},
		"no text":            {``, 1, ""},
	} {
		got, err := replies([]byte(tc.body), tc.n)
		if string(got) != tc.want || (err != nil) != (tc.want == "") {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, tc.want)
		}
		if f, ok := errors.AsType[*store.Failure](err); err != nil && (!ok || f.Why != noAnswer) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func TestFailures(t *testing.T) {
	const sent = "bytes of the server"
	for status, want := range map[int]string{
		301: "redirects", 308: "redirects", 401: "refuses the token", 403: "refuses the token", 404: "status 404", 405: "status 405", 413: "status 413",
		429: "no more requests", 500: "out of order", 503: "out of order", 101: "status 101", 204: "status 204",
	} {
		for _, body := range []string{sent, `{"error": "` + sent + `"}`} {
			got, err := failed(status, []byte(body), 1)
			f, ok := errors.AsType[*store.Failure](err)
			if got != nil || !ok || !strings.Contains(f.Why, want) || strings.Contains(f.Why, sent) {
				t.Errorf("%d: %q, %v; want an error that says %q", status, got, err, want)
			}
		}
	}
	if got, err := failed(http.StatusBadRequest, []byte(`{"error": "ERR a"}`), 2); string(got) != "-ERR a\r\n-ERR a\r\n" || err != nil {
		t.Errorf("two commands that are refused together: %q, %v", got, err)
	}
	if _, err := failed(http.StatusBadRequest, []byte(sent), 2); err == nil || !strings.Contains(err.Error(), "status 400") {
		t.Errorf("a page: %v", err)
	}
}

// FuzzReplies must not fail on what a server sends, and returns one reply a command.
func FuzzReplies(f *testing.F) {
	f.Add([]byte(`[{"result": ["QQ==", 1, null]}, {"error": "ERR"}]`), 2)
	f.Add([]byte(`{"result": "OK"}`), 1)
	f.Fuzz(func(t *testing.T, body []byte, n int) {
		n = 1 + max(n, 0)%3
		out, err := replies(body, n)
		if err != nil {
			return
		}
		for range n {
			if out = skip(out); out == nil {
				t.Fatalf("%q is not %d replies", body, n)
			}
		}
		if len(out) > 0 {
			t.Fatalf("%q leaves %q after %d replies", body, out, n)
		}
	})
}

// skip returns what follows a reply, nil when there is none.
func skip(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	line, rest, whole := strings.Cut(string(b[1:]), "\r\n")
	if !whole {
		return nil
	}
	var n int
	for _, digit := range line {
		n = 10*n + int(digit-'0')
	}
	switch {
	case b[0] == ':' || b[0] == '-' || b[0] == '+' || line == "-1":
		return []byte(rest)
	case b[0] == '$' && len(rest) >= n+2:
		return []byte(rest[n+2:])
	case b[0] == '*':
		left := []byte(rest)
		for range n {
			if left = skip(left); left == nil {
				return nil
			}
		}
		return left
	}
	return nil
}

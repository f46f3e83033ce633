package replay

import (
	"errors"
	"net/http"
	"testing"
	"time"
)

func TestTextLines(t *testing.T) {
	at := time.Date(2026, 10, 10, 11, 55, 36, 0, time.UTC)
	for name, tc := range map[string]struct {
		line                          string
		method, target, client, agent string
	}{
		"common": {
			`203.0.113.7 - frank [10/Oct/2026:13:55:36 +0200] "GET /a?b=1 HTTP/1.0" 200 2326`, http.MethodGet, "/a?b=1", "203.0.113.7", "",
		},
		"combined": {
			`2001:db8::1 - - [10/Oct/2026:11:55:36 +0000] "POST /x HTTP/1.1" 200 1 "http://www.example/" "curl/8"`, http.MethodPost, "/x", "2001:db8::1", "curl/8",
		},
		"with a user that has spaces": {
			`203.0.113.7 - a b [10/Oct/2026:11:55:36 +0000] "GET / HTTP/1.1" 200 1 "-" "-"`, http.MethodGet, "/", "203.0.113.7", "",
		},
		"with quotation marks": {
			`203.0.113.7 - - [10/Oct/2026:11:55:36 +0000] "GET / HTTP/1.1" 200 1 "-" "a \"b\" \\ c"`, http.MethodGet, "/", "203.0.113.7", `a "b" \ c`,
		},
		"with the name of a host": {
			`www.example - - [10/Oct/2026:11:55:36 +0000] "GET / HTTP/1.1" 200 1`, http.MethodGet, "/", "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := parseText(tc.line)
			if err != nil {
				t.Fatal(err)
			}
			if !e.Time.Equal(at) || e.Method != tc.method || e.Target != tc.target || e.Client != tc.client || e.Header.Get("User-Agent") != tc.agent {
				t.Errorf("it is %+v", e)
			}
		})
	}
}

func TestLinesThatAreNotRequests(t *testing.T) {
	for line, want := range map[string]error{
		"": errTime,
		`203.0.113.7 - - [10/Oct/2026:11:55:36 "GET / HTTP/1.1" 200 1`:          errTime,
		`203.0.113.7 - - [yesterday] "GET / HTTP/1.1" 200 1`:                    errTime,
		`203.0.113.7 - - [10/Oct/2026:11:55:36 +0000] GET / HTTP/1.1 200 1`:     errQuoted,
		`203.0.113.7 - - [10/Oct/2026:11:55:36 +0000] "GET / HTTP/1.1 200 1`:    errQuoted,
		`203.0.113.7 - - [10/Oct/2026:11:55:36 +0000] "\x16\x03" 400 0 "-" "-"`: errRequest,
		`203.0.113.7 - - [10/Oct/2026:11:55:36 +0000] "-" 408 0 "-" "-"`:        errRequest,
	} {
		if _, err := parseText(line); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", line, err, want)
		}
	}
}

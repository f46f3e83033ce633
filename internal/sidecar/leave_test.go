package sidecar

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
)

// TestLeaveSendsClientsElsewhere: when its pod ends, the sidecar serves as before,
// and ends each connection with the request it is at.
func TestLeaveSendsClientsElsewhere(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	s.ownApp(t, http.HandlerFunc(hello))
	s.start(t)
	protocols := func(h2 bool) *http.Protocols {
		p := new(http.Protocols)
		p.SetHTTP1(!h2)
		p.SetUnencryptedHTTP2(h2)
		return p
	}
	clients := map[string]*http.Client{
		"HTTP/1.1": {Transport: &http.Transport{Protocols: protocols(false)}},
		"HTTP/2":   {Transport: &http.Transport{Protocols: protocols(true)}},
	}
	for name, client := range clients {
		s.kept(t, client)
		if _, kept := s.kept(t, client); !kept {
			t.Errorf("%s: a connection was not kept while nothing ends", name)
		}
	}
	if err := leave(t.Context(), []string{"--check-address", net.JoinHostPort(s.ip, "15010")}, io.Discard); err != nil {
		t.Fatal(err)
	}
	for name, client := range clients {
		s.kept(t, client) // the last on the connection that was kept
		for range 3 {
			if status, kept := s.kept(t, client); status != http.StatusOK || kept {
				t.Errorf("%s: status %d, connection kept: %t", name, status, kept)
			}
		}
	}
}

// kept sends a request and says whether it went over a connection that was kept.
func (s *sandbox) kept(t *testing.T, client *http.Client) (status int, kept bool) {
	t.Helper()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { kept = info.Reused },
	})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url(15006, "/"), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, kept
}

func TestLeaveNamesTheError(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--address=1"}, "sidecar leave --help"},
		{[]string{"now"}, "is not a flag"},
		{[]string{"--check-address=127.0.0.1:1"}, "is a sidecar running there?"},
	} {
		if err := leave(t.Context(), tc.args, io.Discard); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %v does not say %q", tc.args, err, tc.want)
		}
	}
	var out bytes.Buffer
	if err := leave(t.Context(), []string{"--help"}, &out); err != nil || !strings.Contains(out.String(), "sidecar leave") {
		t.Errorf("error %v, output %q", err, &out)
	}
}

package jwks

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/jwt"
	"github.com/weir-dev/weir/pkg/store"
)

// keySet is a set as a server sends it, and as sidecars are sent it: with the key of RFC 8037,
// appendix A.
const keySet = `{"keys":[{"kty":"OKP","kid":"a","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`

func allow(context.Context, string, string, syscall.RawConn) error { return nil }

func deny(context.Context, string, string, syscall.RawConn) error {
	return &store.Failure{Why: "its address is not allowed", Cause: errors.New("secret cause")}
}

// serving returns a server, and a Fetcher that takes its certificate for genuine.
func serving(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *Fetcher) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	known := x509.NewCertPool()
	known.AddCert(server.Certificate())
	return server, &Fetcher{https: newClient(allow, known), http: newClient(deny, nil)}
}

func sending(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

func TestFetch(t *testing.T) {
	var seen *http.Request
	server, f := serving(t, func(w http.ResponseWriter, r *http.Request) {
		seen = r
		_, _ = w.Write([]byte(" " + keySet))
	})
	got, err := f.Fetch(t.Context(), server.URL+"/keys?tenant=a")
	if err != nil || got != keySet {
		t.Fatalf("Fetch = %s, %v", got, err)
	}
	if seen.Method != http.MethodGet || seen.RequestURI != "/keys?tenant=a" || seen.Header.Get("Authorization") != "" {
		t.Errorf("the server was sent %s %s with %v", seen.Method, seen.RequestURI, seen.Header)
	}
}

func TestFailedFetches(t *testing.T) {
	elsewhere := httptest.NewServer(sending(keySet))
	defer elsewhere.Close()
	secret := `{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"a redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, "redirects (status 302), which is not followed"},
		"a redirect to itself": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/again" {
				sending(keySet)(w, r)
			}
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
		}, "redirects (status 307)"},
		"an error":        {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, secret, http.StatusNotFound) }, "status 404 instead of 200"},
		"no content":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, "status 204 instead of 200"},
		"no set":          {sending("<html>secret"), "what its server sends is not a JSON Web Key Set"},
		"a symmetric key": {sending(secret), "what its server sends keys[0] is symmetric or private"},
		"too much":        {sending(keySet + strings.Repeat(" ", jwt.MaxSet)), "at most 65536 are read"},
		"many headers": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("secret", maxHeaders))
		}, "cannot be reached, or ends the connection"},
		"half an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			_, _ = w.Write([]byte("secret"))
		}, "cannot be reached, or ends the connection"},
		"compressed bytes": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte{31, 139})
		}, "is not a JSON Web Key Set"},
	} {
		t.Run(name, func(t *testing.T) {
			server, f := serving(t, tc.handler)
			got, err := f.Fetch(t.Context(), server.URL)
			requireFailure(t, got, err, tc.want)
		})
	}
}

// requireFailure checks the text that everybody may read.
func requireFailure(t *testing.T, got string, err error, want string) {
	t.Helper()
	if got != "" || err == nil {
		t.Fatalf("Fetch = %q, %v; want an error", got, err)
	}
	if text := store.Plain(err).Error(); !strings.Contains(text, want) || strings.Contains(text, "secret") {
		t.Errorf("the error says %q, want %q and nothing that was sent", text, want)
	}
}

func TestServersThatAreNotAsked(t *testing.T) {
	server, f := serving(t, sending(keySet))
	plain := httptest.NewServer(sending(keySet))
	defer plain.Close()
	for name, tc := range map[string]struct {
		fetcher   *Fetcher
		url, want string
	}{
		"an address that is denied":   {&Fetcher{https: newClient(deny, nil), http: newClient(allow, nil)}, server.URL, "its address is not allowed"},
		"without encryption":          {f, plain.URL, "its address is not allowed"},
		"an unknown authority":        {NewFetcher(allow, allow), server.URL, "the certificate of its server is not valid"},
		"another name":                {f, strings.Replace(server.URL, "127.0.0.1", "localhost", 1), "the certificate of its server is not valid"},
		"nobody":                      {f, "https://127.0.0.1:1", "cannot be reached"},
		"what has no host":            {f, "https://", "cannot be reached"},
		"what is not a URL":           {f, "https://[", "its URL cannot be read"},
		"a server without encryption": {f, strings.Replace(plain.URL, "http:", "https:", 1), "cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.fetcher.Fetch(t.Context(), tc.url)
			requireFailure(t, got, err, tc.want)
		})
	}
	if got, err := NewFetcher(deny, allow).Fetch(t.Context(), plain.URL); err != nil || got != keySet {
		t.Errorf("where it is allowed Fetch = %s, %v", got, err)
	}
}

func TestASlowServerIsGivenUp(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // which accepts, and never answers
	client := newClient(allow, nil)
	if client.Timeout != fetchTimeout {
		t.Errorf("a reading may take %s, want %s", client.Timeout, fetchTimeout)
	}
	client.Timeout = 20 * time.Millisecond
	got, err := (&Fetcher{https: client}).Fetch(t.Context(), "https://"+listener.Addr().String())
	requireFailure(t, got, err, "does not answer within 5s")
}

// TestNoProxyIsUsed, which would dial for the controller.
func TestNoProxyIsUsed(t *testing.T) {
	if transport, ok := newClient(allow, nil).Transport.(*http.Transport); !ok || transport.Proxy != nil {
		t.Error("a proxy of the environment may be used")
	}
}

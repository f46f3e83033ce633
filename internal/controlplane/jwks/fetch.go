package jwks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/weir-dev/weir/pkg/jwt"
	"github.com/weir-dev/weir/pkg/store"
)

// Bounds of one reading.
const (
	fetchTimeout = 5 * time.Second // of all of it
	maxHeaders   = 16 << 10        // bytes
)

// A Fetcher reads key sets.
type Fetcher struct{ https, http *http.Client }

// NewFetcher returns a Fetcher that asks before it dials: encrypted before it dials an
// address for a URL with https, plain for one with http.
func NewFetcher(encrypted, plain store.Control) *Fetcher {
	return &Fetcher{https: newClient(encrypted, nil), http: newClient(plain, nil)}
}

// newClient returns a client that takes servers for genuine by the authorities, nil for
// those of the system.
func newClient(control store.Control, authorities *x509.CertPool) *http.Client {
	return &http.Client{
		Timeout: fetchTimeout,
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{ControlContext: control}).DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities},
			DisableKeepAlives:      true, // the next reading is minutes away
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeaders,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Fetch returns the public keys of the set at a URL. It blocks for at most fetchTimeout. An
// error has a *store.Failure, whose Why is for everybody.
func (f *Fetcher) Fetch(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", &store.Failure{Why: "its URL cannot be read", Cause: err}
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	request.Header.Set("User-Agent", "weir-controller")
	client := f.https
	if request.URL.Scheme != "https" {
		client = f.http
	}
	response, err := client.Do(request)
	if err != nil {
		return "", unanswered(err)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, jwt.MaxSet+1))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return "", unanswered(err)
	}
	if response.StatusCode != http.StatusOK {
		return "", answered(response.StatusCode)
	}
	keys, err := jwt.PublicKeys(body)
	if err != nil {
		return "", &store.Failure{Why: "what its server sends " + err.Error()}
	}
	return keys, nil
}

// unanswered returns the error of a server that sent no answer, or not all of it.
func unanswered(err error) error {
	if _, explained := errors.AsType[*store.Failure](err); explained {
		return err
	}
	_, forged := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[*net.DNSError](err)
	timeout, _ := errors.AsType[net.Error](err)
	why := "its server cannot be reached, or ends the connection"
	switch {
	case forged:
		why = "the certificate of its server is not valid for its name, or of no authority of the controller's system: correct it, or copy the set into a Secret"
	case unknown:
		why = "the name of its server is not known: correct it"
	case timeout != nil && timeout.Timeout():
		why = fmt.Sprintf("its server does not answer within %s", fetchTimeout)
	}
	return &store.Failure{Why: why, Cause: err}
}

// answered returns the error of an answer that is not a success.
func answered(status int) error {
	if status >= 300 && status < 400 {
		return &store.Failure{Why: fmt.Sprintf("its server redirects (status %d), which is not followed: write the URL that it leads to", status)}
	}
	return &store.Failure{Why: fmt.Sprintf("its server answers with status %d instead of 200", status)}
}

package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

const (
	maxRedirects = 10
	maxBody      = 10 << 10 // bytes that are read, as the kubelet does
	userAgent    = "kube-probe/weir"
)

// client does what the kubelet's does: no connection is kept, nothing is compressed,
// and certificates are not looked at. It follows redirects on the same host only; one
// to elsewhere is an answer like any other.
var client = &http.Client{
	Transport: &http.Transport{
		DisableKeepAlives:  true,
		DisableCompression: true,
		ForceAttemptHTTP2:  true,
		//nolint:gosec // the kubelet does not verify either: it asks whether the app lives, and sends it nothing
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	},
	CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if next.URL.Hostname() != via[0].URL.Hostname() {
			return http.ErrUseLastResponse
		}
		if len(via) >= maxRedirects {
			return fmt.Errorf("stopped after %d redirects", maxRedirects)
		}
		return nil
	},
}

// ask puts the target's question to the app at the host.
func ask(ctx context.Context, app string, t *Target) error {
	if timeout := t.timeout(); timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer in %s", timeout))
		defer cancel()
	}
	var err error
	switch {
	case t.HTTP != nil:
		err = t.HTTP.get(ctx, app)
	case t.TCP != nil:
		err = t.TCP.connect(ctx, app)
	default:
		err = t.GRPC.check(ctx, app)
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func address(app string, port int32) string { return net.JoinHostPort(app, strconv.Itoa(int(port))) }

func (h *HTTP) get(ctx context.Context, app string) error {
	request, err := h.request(ctx, app)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			return wrapped.Err // its text does not repeat the address and the method
		}
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, maxBody)); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("the app answers %d", response.StatusCode)
	}
	return nil
}

// request builds the request that the kubelet would send.
func (h *HTTP) request(ctx context.Context, app string) (*http.Request, error) {
	target, err := url.Parse(h.Path) // keeps a query, as the kubelet does
	if err != nil {
		target = &url.URL{Path: h.Path}
	}
	target.Scheme, target.Host = "http", address(app, h.Port)
	if h.TLS {
		target.Scheme = "https"
	}
	if !strings.HasPrefix(target.Path, "/") {
		target.Path = "/" + target.Path
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	for _, header := range h.Headers {
		request.Header.Add(header.Name, header.Value)
		if http.CanonicalHeaderKey(header.Name) == "Host" {
			request.Host = header.Value
		}
	}
	for name, value := range map[string]string{"User-Agent": userAgent, "Accept": "*/*"} {
		switch values, ok := request.Header[name]; {
		case !ok:
			request.Header.Set(name, value)
		case values[0] == "": // which asks for none
			delete(request.Header, name)
		}
	}
	return request, nil
}

func (c *TCP) connect(ctx context.Context, app string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address(app, c.Port))
	if err != nil {
		return err
	}
	return conn.Close()
}

func (g *GRPC) check(ctx context.Context, app string) error {
	conn, err := grpc.NewClient("passthrough:///"+address(app, g.Port),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUserAgent(userAgent), grpc.WithNoProxy())
	if err != nil {
		return err
	}
	defer conn.Close()
	answer, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: g.Service})
	if err != nil {
		return err
	}
	if status := answer.GetStatus(); status != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("the app's status is %s", status)
	}
	return nil
}

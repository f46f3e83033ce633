package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/controlplane/webhook"
	"github.com/weir-dev/weir/internal/controlplane/webhook/webhooktest"
)

// webhookRows are of pods that editors create, and of reviews that somebody sends to the
// webhooks past the API server.
func webhookRows() (rows []row) {
	for _, key := range []string{"sidecar-cpu-request", "sidecar-cpu-limit", "sidecar-memory-request", "sidecar-memory-limit"} {
		for _, value := range []string{"1e9999999", "1e-9999999", "1e2147483647", "1e-2147483648"} {
			rows = append(rows, row{
				name: fmt.Sprintf("a pod whose %s is %s", key, value), as: editor,
				do:   annotated("config.weir.dev/"+key, value),
				must: be("the default is used, with a warning", "done; sidecar image", "without a sign or an exponent; the default is used"),
			})
		}
	}
	all := webhooktest.Hostile()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(name, "sidecar-") {
			continue // editors try these
		}
		rows = append(rows, row{
			name: "a review of " + name, as: stranger, do: review(all[name].Bytes), long: len(all[name].Bytes()) > 1<<20,
			must: be("it costs little, and the answer says "+code(all[name].Want), all[name].Want),
		})
	}
	none := func() []byte { return []byte(`{}`) }
	rows = append(rows,
		row{
			name: "a review that says it is XML", as: stranger, do: reviewAs("application/xml", none),
			must: be("415", "415 "),
		},
		row{
			name: "a review that ends in the middle", as: stranger, do: review(func() []byte { return all["120,000 variables"].Bytes()[:100_000] }),
			must: be("400", "400 "),
		},
		row{
			name: "40 reviews whose bodies never come", as: stranger, do: slowReviews(40), long: true,
			must: be("all are ended in time", "40 ended"),
		},
		row{
			name: "reviews of 100 KB by 64 connections for 3 s, and of 3 MB by 8", as: stranger, do: floodsReviews(all["120,000 variables"].Bytes, nothing), long: true,
			must: be("pods of others are created in time, with sidecars", "0 of 10 pods"),
		},
		row{
			name: "the same, and the Secret of the certificates is deleted meanwhile", as: stranger, do: floodsReviews(all["120,000 variables"].Bytes, loseCertificates), long: true,
			must: be("no handshake fails: pods of others are created in time, with sidecars", "0 of 10 pods"),
		},
		row{
			name: "pprof, metrics and variables at the port of the webhooks", as: stranger, do: otherPaths,
			must: be("404", "404 404 404 404").without("200"),
		},
		row{
			name: "TLS 1.0 to 1.2 at the port of the webhooks", as: stranger, do: oldTLSAt(func(w *world) string { return strings.TrimPrefix(w.webhooks, "https://") }),
			must: be("no handshake", "protocol version not supported"),
		},
	)
	return rows
}

func code(text string) string { return "`" + strings.Trim(text, "`") + "`" }

// review sends the webhook for pods a review past the API server, as any pod may that reaches it.
func review(body func() []byte) func(context.Context, *world) (string, error) {
	return reviewAs("application/json", body)
}

func reviewAs(kind string, body func() []byte) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		return w.ask(ctx, w.webhooks+webhook.InjectPath, kind, bytes.NewReader(body()))
	}
}

// ask posts something to the controller, and returns the status and the answer.
func (w *world) ask(ctx context.Context, url, kind string, body io.Reader) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", kind)
	transport := &http.Transport{TLSClientConfig: w.tls()}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("no answer came: %w", err)
		}
		return "error: " + err.Error(), nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	return resp.Status + " " + string(text), nil
}

// tls is how a client shakes hands that has no certificate.
func (w *world) tls() *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.authority)
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool}
}

// slowReviews sends the heads of reviews at the same time, and some bytes of their bodies.
func slowReviews(n int) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		ends := make(chan error, n)
		for range n {
			body, hold := io.Pipe()
			go func() {
				_, _ = hold.Write([]byte(`{"kind":`)) // and nothing more
				<-ctx.Done()
				_ = hold.Close()
			}()
			go func() {
				_, err := w.ask(ctx, w.webhooks+webhook.InjectPath, "application/json", body)
				ends <- err
			}()
		}
		ended := 0
		for range n {
			if err := <-ends; err == nil {
				ended++
			}
		}
		return fmt.Sprintf("%d ended", ended), nil
	}
}

func nothing(context.Context, *world) error { return nil }

// loseCertificates deletes what the controllers serve by, as an administrator may by mistake.
func loseCertificates(ctx context.Context, w *world) error {
	return w.kube.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: weirSpace, Name: "weir-certificates"}})
}

// floodsReviews sends reviews without end, most of them small, while pods of the victim are
// created.
func floodsReviews(large func() []byte, meanwhile func(context.Context, *world) error) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		const small, big, pods = 64, 8, 10
		flooding, stop := context.WithCancel(ctx)
		defer stop()
		whole := large()
		transport := &http.Transport{TLSClientConfig: w.tls(), MaxIdleConnsPerHost: small + big}
		defer transport.CloseIdleConnections()
		var sent, refused atomic.Int64
		var all sync.WaitGroup
		for i := range small + big {
			body := whole[:min(len(whole), 3<<20)]
			if i < small {
				body = whole[:min(len(whole), 100<<10)]
			}
			all.Go(func() { sendReviews(flooding, transport, w.webhooks+webhook.InjectPath, body, &sent, &refused) })
		}
		sleepUntil(ctx, time.Now().Add(time.Second))
		if err := meanwhile(ctx, w); err != nil {
			return "", err
		}
		var problems []error
		for range pods {
			if _, err := w.victim.admission(ctx); err != nil {
				problems = append(problems, err)
			}
			sleepUntil(ctx, time.Now().Add(200*time.Millisecond))
		}
		stop()
		all.Wait()
		return fmt.Sprintf("%d of %d pods are not created as they should be: %v; %d reviews, %d of them refused with 503",
			len(problems), pods, errors.Join(problems...), sent.Load(), refused.Load()), nil
	}
}

// sendReviews sends a review again and again until ctx is done, and counts answers.
func sendReviews(ctx context.Context, by http.RoundTripper, url string, review []byte, sent, refused *atomic.Int64) {
	for ctx.Err() == nil {
		switch sendReview(ctx, by, url, review) {
		case 0: // the webhooks may end connections
		case http.StatusServiceUnavailable:
			refused.Add(1)
			fallthrough
		default:
			sent.Add(1)
		}
	}
}

// sendReview sends a review, and returns the status of the answer, 0 when none came.
func sendReview(ctx context.Context, by http.RoundTripper, url string, review []byte) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(review))
	if err != nil {
		return 0
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := by.RoundTrip(r)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func otherPaths(ctx context.Context, w *world) (string, error) {
	var codes []string
	for _, path := range []string{"/debug/pprof/heap", "/metrics", "/debug/vars", "/"} {
		answer, err := w.ask(ctx, w.webhooks+path, "application/json", http.NoBody)
		if err != nil {
			return "", err
		}
		codes = append(codes, answer[:min(3, len(answer))])
	}
	return strings.Join(codes, " "), nil
}

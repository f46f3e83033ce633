package check_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/check"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store/memory"
	"github.com/weir-dev/weir/pkg/twotier"
)

type nothing struct{}

func (nothing) Limits() []enforce.LimitState { return nil }
func (nothing) Pools() []pools.State         { return nil }
func (nothing) Fleet() *fleet.State          { return nil }

// one is the only store.
type one struct{ store twotier.Store }

func (o one) Open(policy.Store) (twotier.Store, error) { return o.store, nil }
func (o one) Budget() twotier.Store                    { return o.store }
func (one) Retain(map[policy.Store]bool)               {}

// examples are the requests of the page and their answers.
var examples = regexp.MustCompile(`(?m)^curl -s localhost:15010(\S+) .*\\\n  -d '(.*)'\n(.*)$`)

// times are what differs from run to run: ages, and what is left of 42 seconds.
var times = regexp.MustCompile(`"storeAgeMs":\d+|:4[012]\d\d\d\b`)

// TestThePageShowsWhatIsAnswered sends the requests of docs/check.md one after the other, 18
// seconds into a minute.
func TestThePageShowsWhatIsAnswered(t *testing.T) {
	page, err := os.ReadFile("../../../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	at := limiter.Instant(30_000_000*60+18) * limiter.Instant(limiter.Second)
	e := enforce.New(enforce.Config{
		Namespace: "shop", Mode: enforce.Enforce, Log: slog.New(slog.DiscardHandler),
		Stores:     one{twotier.NewBreaker(memory.New(memory.Options{Clock: func() limiter.Instant { return at }, First: true}))},
		NewLimiter: func(c twotier.Config, s twotier.Store) (enforce.Limiter, error) { return twotier.New(c, s) },
	})
	defer e.Close(context.Background())
	minutely := func(n int64) []limiter.Rate { return []limiter.Rate{{Limit: n, Window: 60 * limiter.Second}} }
	set, err := policy.Compile(policy.Snapshot{Cluster: "test", Policies: []policy.Policy{{
		Namespace: "shop", Name: "checkout", Generation: 1, Mode: policy.Enforce, Store: policy.Store{Type: policy.ControllerStore},
		Consistency:        policy.Consistency{Mode: policy.Leased, Size: policy.Fixed, Batch: 10, Expiry: policy.Coupled},
		OnStoreUnavailable: policy.Deny,
		Limits: []policy.Limit{
			{Name: "all", Rates: minutely(500)},
			{Name: "per-user", Rates: minutely(20), Key: &policy.Key{
				Parts: []policy.KeyPart{{Type: policy.HeaderKey, Header: "x-user"}}, OnMissing: policy.Skip, MaxKeys: 100,
			}},
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Apply(set, "version"); err != nil {
		t.Fatal(err)
	}
	h := &check.Handler{Checker: e, Metrics: metrics.New(nothing{}), Log: slog.New(slog.DiscardHandler)}
	found := examples.FindAllStringSubmatch(string(page), -1)
	if len(found) != 4 {
		t.Fatalf("the page has %d examples, want 4", len(found))
	}
	for _, of := range found {
		r := httptest.NewRequest(http.MethodPost, of[1], strings.NewReader(of[2]))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		got, want := strings.TrimSpace(w.Body.String()), of[3]
		if times.ReplaceAllString(got, "") != times.ReplaceAllString(want, "") {
			t.Errorf("%s %s\n got %s\nwant %s", of[1], of[2], got, want)
		}
	}
}

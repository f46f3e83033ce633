package coordinator

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

// valuesOf returns the values that the API allows for a type, as its marker lists them.
func valuesOf[T ~string](t *testing.T) []T {
	t.Helper()
	name := fmt.Sprintf("%T", T(""))
	name = name[strings.LastIndex(name, ".")+1:]
	files, err := filepath.Glob("../../../api/v1alpha1/*_types.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(`validation:Enum=(\S+)\ntype ` + name + ` string`).FindSubmatch(text); m != nil {
			var values []T
			for value := range strings.SplitSeq(string(m[1]), ";") {
				values = append(values, T(value))
			}
			return values
		}
	}
	t.Fatalf("the API has no type %s with values", name)
	return nil
}

// everyKind calls f with every combination of what the API allows of an algorithm, its
// windows, the consistency, the mode and the store. No value can be added to the API
// without being among them.
func everyKind(t *testing.T, f func(name string, p *v1alpha1.RateLimitPolicy)) {
	for _, algorithm := range valuesOf[v1alpha1.Algorithm](t) {
		rates := []v1alpha1.Rate{{Limit: 100, Window: "1s"}, {Limit: 2_678_400_000, Window: "744h"}} // 1000 a second
		if algorithm == v1alpha1.QuotaAlgorithm {
			rates = nil
			for _, cadence := range valuesOf[v1alpha1.Cadence](t) {
				rates = append(rates, v1alpha1.Rate{Limit: 100, Cadence: cadence})
			}
		}
		for _, rate := range rates {
			for _, consistency := range valuesOf[v1alpha1.ConsistencyMode](t) {
				if algorithm == v1alpha1.LeakyBucketAlgorithm && consistency != v1alpha1.StrictMode {
					continue // the API refuses it: each request is delayed by its place in the queue
				}
				for _, mode := range valuesOf[v1alpha1.PolicyMode](t) {
					for _, kept := range valuesOf[v1alpha1.StoreType](t) {
						p := &v1alpha1.RateLimitPolicy{
							ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout", Generation: 1},
							Spec: v1alpha1.RateLimitPolicySpec{
								PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "checkout"}},
								Mode:        mode,
								Limits:      []v1alpha1.Limit{{Name: "all", Algorithm: algorithm, Rates: []v1alpha1.Rate{rate}, Combine: v1alpha1.CombineAll}},
								Consistency: v1alpha1.Consistency{Mode: consistency},
								Store:       v1alpha1.PolicyStore{Store: v1alpha1.Store{Type: kept}},

								OnStoreUnavailable: v1alpha1.OnStoreUnavailable{Action: v1alpha1.LocalShareAction},
							},
						}
						if algorithm == v1alpha1.LeakyBucketAlgorithm {
							p.Spec.Limits[0].MaxDelay = "500ms"
						}
						if algorithm == v1alpha1.QuotaAlgorithm {
							p.Spec.Limits[0].UTCOffset = "-14:00"
						}
						switch kept {
						case v1alpha1.ControllerStore:
						case v1alpha1.RedisStoreType:
							p.Spec.Store.Redis = &v1alpha1.RedisStore{Address: "redis:6379"}
						case v1alpha1.PostgresStoreType:
							p.Spec.Store.Postgres = &v1alpha1.PostgresStore{Address: "postgres:5432", Database: "weir"}
						}
						f(strings.Join([]string{string(algorithm), string(rate.Window) + string(rate.Cadence), string(consistency), string(mode), string(kept)}, "/"), p)
					}
				}
			}
		}
	}
}

// TestEveryKindOfLimitPassesTheController: of each kind a policy is published and
// acknowledged, its store's windows come back in a report and in a return, the audit
// counts them, and the controller rejects nothing.
func TestEveryKindOfLimitPassesTheController(t *testing.T) {
	served := map[v1alpha1.Algorithm]int{}
	everyKind(t, func(name string, in *v1alpha1.RateLimitPolicy) {
		t.Run(name, func(t *testing.T) {
			p, err := translate.Policy(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			served[in.Spec.Limits[0].Algorithm]++
			synctest.Test(t, func(t *testing.T) { passes(t, p) })
		})
	})
	for _, algorithm := range valuesOf[v1alpha1.Algorithm](t) {
		if served[algorithm] == 0 {
			t.Errorf("no limit of algorithm %s passed", algorithm)
		}
	}
}

func passes(t *testing.T, p policy.Policy) {
	l := lead(t, first(), publishing(p))
	defer l.end()
	s := l.connect(pod("shop", "web-0"), "1")
	defer s.close()
	s.config()
	limit := p.Limits[0]
	// The other stores work by the same machine, which this stands for.
	clock := memory.NewClock(time.Now(), 0)
	elsewhere := memory.New(memory.Options{Clock: clock.Now, First: true})
	time.Sleep(2 * time.Second)

	take := func() []*fleetpb.Window {
		t.Helper()
		if p.Store.Type == policy.ControllerStore {
			reply := s.lease(p, limit, func(r *fleetpb.LeaseRequest) { r.Rates = ratesTo(limit.Rates) })
			if reply.GetError() != "" || reply.GetGranted() != 1 {
				t.Fatalf("reply = %v, want a unit", reply)
			}
			return reply.GetWindows()
		}
		res, err := elsewhere.Apply(t.Context(), store.Key{Scope: store.Scope{Namespace: p.Namespace, Policy: p.Name, Limit: limit.Name}},
			limit.Params(&p), limiter.Command{Min: 1, Want: 1})
		if err != nil || res.Granted != 1 {
			t.Fatalf("result = %+v, %v, want a unit", res, err)
		}
		return windowsTo(res.Windows)
	}
	for i := range int64(3) {
		row := &fleetpb.WindowReport{Windows: take(), Admitted: i + 1}
		s.report(&fleetpb.LimitReport{
			Namespace: p.Namespace, Policy: p.Name, Limit: limit.Name, Generation: p.Generation,
			AdmittedTotal: i + 1, ActiveKeys: i + 1, Windows: []*fleetpb.WindowReport{row},
		})
		time.Sleep(time.Second)
	}
	if p.Store.Type == policy.ControllerStore {
		s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Lease{Lease: &fleetpb.LeaseRequest{
			Key: &fleetpb.Key{Namespace: p.Namespace, Policy: p.Name, Limit: limit.Name}, Generation: p.Generation,
			Rates: ratesTo(limit.Rates), Op: int32(limiter.Return), Want: 1, Windows: take(), AtMicros: time.Now().UnixMicro(),
		}}})
	}
	take()
	for _, kind := range []string{reportRow, poolRow, replyRow, leaseRow, returnRow, beatRow} {
		if n := l.rejectedCount(kind); n != 0 {
			t.Errorf("%v rows of kind %s were rejected: %s", n, kind, l.Observe("shop", "checkout").Sessions[0].Rejected)
		}
	}
	got := l.Observe("shop", "checkout")
	if len(got.Sessions) != 1 || got.Sessions[0].Generation != p.Generation || l.present.Load().sessions.len() != 1 {
		t.Errorf("sessions = %+v, want the one stream, which enforces the policy", got.Sessions)
	}
	if f := l.figures(); f.ActiveKeys != 3 || f.Verdict == audit.NoTraffic {
		t.Errorf("figures = %+v, want what was reported to count", f)
	}
}

func ratesTo(rates []limiter.Rate) []*fleetpb.Rate {
	var out []*fleetpb.Rate
	for _, r := range rates {
		out = append(out, rateTo(r))
	}
	return out
}

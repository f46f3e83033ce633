package translate_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/policy"
)

var update = flag.Bool("update", false, "rewrite the *.out.yaml files under testdata")

const (
	inSuffix  = ".in.yaml"
	outSuffix = ".out.yaml"
)

// goldenPolicy is what testdata/policy/*.out.yaml holds.
type goldenPolicy struct {
	Policy   policy.Policy `json:"policy"`
	Warnings []string      `json:"warnings,omitempty"`
}

func TestPolicy(t *testing.T) {
	golden(t, "policy", func(t *testing.T, in []byte) any {
		p := defaulted(t, in)
		translated, err := translate.Policy(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		warnings, errs := translate.Validate(p, nil)
		if len(errs) > 0 {
			t.Fatalf("Validate refuses what Policy translates: %v", errs)
		}
		return goldenPolicy{Policy: translated, Warnings: warnings}
	})
}

// goldenPool is what testdata/pool/*.out.yaml holds.
type goldenPool struct {
	Pool     policy.Pool `json:"pool"`
	Warnings []string    `json:"warnings,omitempty"`
}

func TestPool(t *testing.T) {
	golden(t, "pool", func(t *testing.T, in []byte) any {
		p := defaultedPool(t, in)
		translated, err := translate.Pool(p)
		if err != nil {
			t.Fatal(err)
		}
		warnings, errs := translate.ValidatePool(p)
		if len(errs) > 0 {
			t.Fatalf("ValidatePool refuses what Pool translates: %v", errs)
		}
		return goldenPool{Pool: translated, Warnings: warnings}
	})
}

// goldenBudget is what testdata/budget/*.out.yaml holds.
type goldenBudget struct {
	Budget   policy.FederatedBudget `json:"budget"`
	Warnings []string               `json:"warnings,omitempty"`
}

// self is the member that clusters in golden files are.
const self = "eu-west"

func TestBudget(t *testing.T) {
	golden(t, "budget", func(t *testing.T, in []byte) any {
		b := defaultedBudget(t, in)
		translated, err := translate.Budget(b, self)
		if err != nil {
			t.Fatal(err)
		}
		warnings, errs := translate.ValidateBudget(b, self)
		if len(errs) > 0 {
			t.Fatalf("ValidateBudget refuses what Budget translates: %v", errs)
		}
		return goldenBudget{Budget: translated, Warnings: warnings}
	})
}

// goldenPod is what testdata/snapshot/*.in.yaml holds.
type goldenPod struct {
	Namespace string            `json:"namespace"`
	Labels    map[string]string `json:"labels"`
	Policies  []map[string]any  `json:"policies"`
	Budgets   []map[string]any  `json:"budgets"` // of the namespace
	Pools     []map[string]any  `json:"pools"`   // that apply to the pod
}

func TestSnapshot(t *testing.T) {
	golden(t, "snapshot", func(t *testing.T, in []byte) any {
		var pod goldenPod
		if err := yaml.UnmarshalStrict(in, &pod); err != nil {
			t.Fatal(err)
		}
		var policies []v1alpha1.RateLimitPolicy
		for _, fields := range pod.Policies {
			policies = append(policies, *defaulted(t, marshal(t, fields)))
		}
		var budgets []*v1alpha1.FederatedBudget
		for _, fields := range pod.Budgets {
			budgets = append(budgets, defaultedBudget(t, marshal(t, fields)))
		}
		var pools []*v1alpha1.ConcurrencyPool
		for _, fields := range pod.Pools {
			pools = append(pools, defaultedPool(t, marshal(t, fields)))
		}
		before := marshal(t, []any{policies, budgets, pools})
		snapshot, err := translate.Snapshot("east", policies, counting(budgets...), pools, pod.Namespace, pod.Labels)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(before), string(marshal(t, []any{policies, budgets, pools}))); diff != "" {
			t.Errorf("it changed objects that a cache may own:\n%s", diff)
		}
		return snapshot
	})
}

// golden compares what run makes of every testdata/dir/*.in.yaml with the
// .out.yaml beside it. An output without an input fails too.
func golden(t *testing.T, dir string, run func(t *testing.T, in []byte) any) {
	inputs := glob(t, dir, inSuffix)
	if len(inputs) == 0 {
		t.Fatalf("testdata/%s has no *%s", dir, inSuffix)
	}
	for base := range inputs {
		t.Run(filepath.Base(base), func(t *testing.T) {
			in, err := os.ReadFile(base + inSuffix)
			if err != nil {
				t.Fatal(err)
			}
			got := marshal(t, run(t, in))
			if *update {
				if err := os.WriteFile(base+outSuffix, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(base + outSuffix)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("output differs; run with -update when the new one is right (-want +got):\n%s", diff)
			}
		})
	}
	for base := range glob(t, dir, outSuffix) {
		if !inputs[base] {
			t.Errorf("%s%s belongs to no input: delete it", base, outSuffix)
		}
	}
}

// glob returns the files of testdata/dir with the suffix, without it.
func glob(t *testing.T, dir, suffix string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*"+suffix))
	if err != nil {
		t.Fatal(err)
	}
	bases := make(map[string]bool)
	for _, f := range files {
		bases[strings.TrimSuffix(f, suffix)] = true
	}
	return bases
}

func marshal(t *testing.T, value any) []byte {
	t.Helper()
	out, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

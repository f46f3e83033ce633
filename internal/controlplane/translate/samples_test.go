package translate_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/controlplane/translate"
)

func TestSamplesAreFreeOfDoubts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "config", "samples", "*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("config/samples has %d files (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if warnings, errs := validateSample(t, text); len(errs) > 0 || len(warnings) > 0 {
				t.Errorf("it is valid with %v, %v; want neither warnings nor errors", warnings, errs)
			}
		})
	}
}

// TestSamplesThatARestartConcerns: long windows in Redis wait when a restart loses them; the
// other samples in Redis have short windows, or resume.
func TestSamplesThatARestartConcerns(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "config", "samples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var warned []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "kind: RateLimitPolicy") {
			continue
		}
		if doubts := translate.RestartDoubts(defaulted(t, text), nothingKnown); len(doubts) > 0 {
			warned = append(warned, filepath.Base(file))
		}
	}
	if want := []string{"redis.yaml", "sliding-log.yaml"}; !slices.Equal(warned, want) {
		t.Errorf("%q are warned of, want %q", warned, want)
	}
}

// validateSample validates a policy, a pool or a budget in the namespace that kubectl
// would give it, of a cluster that is the second member of every budget.
func validateSample(t *testing.T, text []byte) (warnings []string, errs field.ErrorList) {
	t.Helper()
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(text, &kind); err != nil {
		t.Fatal(err)
	}
	switch kind.Kind {
	case "RateLimitPolicy":
		p := defaulted(t, text)
		p.Namespace = "default"
		hub, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "samples", "federated-hub.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		return translate.Validate(p, counting(defaultedBudget(t, hub)))
	case "ConcurrencyPool":
		p := defaultedPool(t, text)
		p.Namespace = "default"
		return translate.ValidatePool(p)
	case "FederatedBudget":
		b := defaultedBudget(t, text)
		b.Namespace = "default"
		return translate.ValidateBudget(b, "us-east")
	default:
		t.Fatalf("it is a %q", kind.Kind)
		return nil, nil
	}
}

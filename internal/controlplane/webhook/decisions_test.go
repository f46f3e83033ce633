package webhook

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"gomodules.xyz/jsonpatch/v2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// TestEveryResultHasASeries: it runs before any pod was decided on, or counts the
// same ones again.
func TestEveryResultHasASeries(t *testing.T) {
	if n := testutil.CollectAndCount(injections); n != len(results) {
		t.Errorf("%d series, want one for each of %q", n, results)
	}
}

func TestDecisionsAreCounted(t *testing.T) {
	for result, answer := range map[string]admission.Response{
		"injected": admission.Patched("", jsonpatch.NewOperation("add", "/spec", nil)).WithWarnings("the image is old"),
		"skipped":  admission.Allowed("the pod did not opt in"),
		"warned":   admission.Allowed("").WithWarnings("no sidecar"),
		"refused":  admission.Denied("it has too many ports"),
		"failed":   admission.Errored(http.StatusInternalServerError, errors.New("the namespace cannot be read")),
	} {
		before := testutil.ToFloat64(injections.WithLabelValues(result))
		h := counted{admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return answer })}
		if got := h.Handle(t.Context(), admission.Request{}); got.Allowed != answer.Allowed {
			t.Errorf("%s: the answer became another", result)
		}
		if n := testutil.ToFloat64(injections.WithLabelValues(result)) - before; n != 1 {
			t.Errorf("%s was counted %v times", result, n)
		}
	}
}

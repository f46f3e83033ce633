package conformance

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/cel-go/cel"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

// readiness says how tools that deploy objects have to judge those that the controllers' tests
// keep: whether to go on waiting, to give up, or to be content.
var readiness = map[string]status.Status{
	"RateLimitPolicy/new":                       status.InProgressStatus,
	"RateLimitPolicy/edited":                    status.InProgressStatus,
	"RateLimitPolicy/invalid":                   status.FailedStatus,
	"RateLimitPolicy/budget-to-come":            status.InProgressStatus,
	"RateLimitPolicy/no-pods":                   status.InProgressStatus,
	"RateLimitPolicy/rolling-out":               status.InProgressStatus,
	"RateLimitPolicy/one-pod-without-a-sidecar": status.InProgressStatus,
	"RateLimitPolicy/one-pod-with-a-host-port":  status.InProgressStatus,
	"RateLimitPolicy/ready":                     status.CurrentStatus,
	"ConcurrencyPool/new":                       status.InProgressStatus,
	"ConcurrencyPool/conflicted":                status.FailedStatus,
	"ConcurrencyPool/no-pods":                   status.InProgressStatus,
	"ConcurrencyPool/ready":                     status.CurrentStatus,
	"FederatedBudget/new":                       status.InProgressStatus,
	"FederatedBudget/not-a-member":              status.FailedStatus,
	"FederatedBudget/partitioned":               status.InProgressStatus,
	"FederatedBudget/ready":                     status.CurrentStatus,
}

// TestReadiness has the code of tools judge every state: kstatus, which kubectl-style tools and
// Flux use, and the expressions of config/gitops by the languages of Argo CD and Flux.
func TestReadiness(t *testing.T) {
	objects := map[string]*unstructured.Unstructured{}
	for document := range bytes.SplitSeq(read(t, "../../controllers/testdata/readiness.yaml"), []byte("---\n")) {
		if len(document) == 0 {
			continue // before the first
		}
		text, err := yaml.YAMLToJSON(document)
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		objects[object.GetKind()+"/"+object.GetName()] = object
	}
	if got, want := slices.Sorted(maps.Keys(objects)), slices.Sorted(maps.Keys(readiness)); !slices.Equal(got, want) {
		t.Fatalf("states are %q, want %q", got, want)
	}
	for name, judge := range map[string]func(*testing.T, *unstructured.Unstructured) status.Status{
		"kstatus": byKstatus, "Argo CD": byArgo(t), "Flux": byFlux(t),
	} {
		for state, want := range readiness {
			t.Run(name+"/"+state, func(t *testing.T) {
				if got := judge(t, objects[state]); got != want {
					t.Errorf("judged %s, want %s", got, want)
				}
			})
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func byKstatus(t *testing.T, object *unstructured.Unstructured) status.Status {
	result, err := status.Compute(object)
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}

// byArgo runs the script of a kind as Argo CD does: with the object as obj.
func byArgo(t *testing.T) func(*testing.T, *unstructured.Unstructured) status.Status {
	var config struct{ Data map[string]string }
	if err := yaml.Unmarshal(read(t, "../../config/gitops/argocd.yaml"), &config); err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, object *unstructured.Unstructured) status.Status {
		script, ok := config.Data["resource.customizations.health.weir.dev_"+object.GetKind()]
		if !ok {
			t.Fatal("there is no script")
		}
		l := lua.NewState()
		defer l.Close()
		l.SetGlobal("obj", luaValue(l, object.Object))
		if err := l.DoString(script); err != nil {
			t.Fatal(err)
		}
		health := l.Get(-1).(*lua.LTable)
		if health.RawGetString("message") == lua.LNil {
			t.Error("the health has no message")
		}
		return map[string]status.Status{
			"Progressing": status.InProgressStatus, "Degraded": status.FailedStatus, "Healthy": status.CurrentStatus,
		}[health.RawGetString("status").String()]
	}
}

func luaValue(l *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := l.NewTable()
		for name, v := range value {
			table.RawSetString(name, luaValue(l, v))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, v := range value {
			table.Append(luaValue(l, v))
		}
		return table
	case string:
		return lua.LString(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	default:
		panic(fmt.Sprintf("%T", value))
	}
}

// byFlux evaluates the expressions of a kind in the order in which Flux does: the fields of the
// object are variables.
func byFlux(t *testing.T) func(*testing.T, *unstructured.Unstructured) status.Status {
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []struct{ APIVersion, Kind, InProgress, Failed, Current string }
		}
	}
	if err := yaml.Unmarshal(read(t, "../../config/gitops/flux.yaml"), &kustomization); err != nil {
		t.Fatal(err)
	}
	env, err := cel.NewEnv(cel.Variable("metadata", cel.DynType), cel.Variable("status", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	holds := func(t *testing.T, expression string, object *unstructured.Unstructured) bool {
		ast, issues := env.Compile(expression)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		value, _, err := program.Eval(map[string]any{"metadata": object.Object["metadata"], "status": object.Object["status"]})
		if err != nil {
			t.Fatal(err)
		}
		return value.Value() == true
	}
	return func(t *testing.T, object *unstructured.Unstructured) status.Status {
		for _, e := range kustomization.Spec.HealthCheckExprs {
			if e.APIVersion != object.GetAPIVersion() || e.Kind != object.GetKind() {
				continue
			}
			switch {
			case holds(t, e.InProgress, object):
				return status.InProgressStatus
			case holds(t, e.Failed, object):
				return status.FailedStatus
			case holds(t, e.Current, object):
				return status.CurrentStatus
			}
			return status.InProgressStatus
		}
		t.Fatal("there are no expressions")
		return ""
	}
}

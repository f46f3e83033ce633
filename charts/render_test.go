//go:build helm

package charts_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/internal/testing/rendered"
)

const (
	chart     = "weir"
	namespace = "weir-system"
)

// install returns what the chart installs with some values, and fails when it would not.
func install(t *testing.T, args ...string) rendered.Objects {
	t.Helper()
	objects, err := rendered.Helm(chart, namespace, args...)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// kustomized returns what the directories of config install together.
func kustomized(t *testing.T, directories ...string) rendered.Objects {
	t.Helper()
	all := rendered.Objects{}
	for _, directory := range directories {
		objects, err := rendered.Kustomize("../config/" + directory)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, objects)
	}
	return all
}

// TestTheChartInstallsWhatKustomizeDoes compares object by object, with the values that
// stand for each directory of config.
func TestTheChartInstallsWhatKustomizeDoes(t *testing.T) {
	for _, tc := range []struct {
		directories []string
		values      []string
	}{
		{directories: []string{"default"}},
		{[]string{"default", "networkpolicy"}, []string{"--set", "networkPolicy.enabled=true"}},
		{[]string{"default", "trial-redis"}, []string{"--set", "trialRedis.enabled=true"}},
		{[]string{"default", "monitoring"}, []string{"--set", "monitoring.enabled=true"}},
	} {
		t.Run(strings.Join(tc.directories, "+"), func(t *testing.T) {
			want, got := kustomized(t, tc.directories...), install(t, tc.values...)
			// Helm keeps its record of the release in the namespace, which is there first.
			delete(want, "Namespace/"+namespace)
			for name, object := range got {
				if object.GetKind() == "CustomResourceDefinition" {
					keep(t, name, object.Object)
				}
				unlabel(t, name, object)
			}
			for name := range want {
				if got[name] == nil {
					t.Errorf("the chart has no %s", name)
				}
			}
			for name := range got {
				if want[name] == nil {
					t.Errorf("only the chart has %s", name)
				} else if diff := cmp.Diff(want[name].Object, got[name].Object); diff != "" {
					t.Errorf("%s differs (-config +chart); after a change of CRDs or of config/monitoring run `make chart-files`\n%s", name, diff)
				}
			}
		})
	}
}

// keep takes off a CRD what only the chart says: that it outlives the release.
func keep(t *testing.T, name string, crd map[string]any) {
	t.Helper()
	annotations := crd["metadata"].(map[string]any)["annotations"].(map[string]any)
	if annotations["helm.sh/resource-policy"] != "keep" {
		t.Errorf("%s would be deleted with the release, and all its objects with it", name)
	}
	delete(annotations, "helm.sh/resource-policy")
}

// unlabel takes off an object the labels by which Helm's users find what a chart installed.
func unlabel(t *testing.T, name string, object *unstructured.Unstructured) {
	t.Helper()
	labels := object.GetLabels()
	for label, want := range map[string]string{"helm.sh/chart": "weir-0.1.0", "app.kubernetes.io/version": "latest"} {
		if got := labels[label]; got != want {
			t.Errorf("%s has the label %s: %q, want %q", name, label, got, want)
		}
		delete(labels, label)
	}
	object.SetLabels(labels)
}

// TestItInstallsIntoAnyNamespace: nothing may point at the namespace of config/default.
func TestItInstallsIntoAnyNamespace(t *testing.T) {
	// A name of digits is the number 123 where a template forgot the quotes.
	for _, other := range []string{"limits", "123"} {
		objects, err := rendered.Helm(chart, other, "--set", "networkPolicy.enabled=true,trialRedis.enabled=true,monitoring.enabled=true")
		if err != nil {
			t.Fatal(err)
		}
		for name, object := range objects {
			if object.GetKind() == "CustomResourceDefinition" {
				continue // descriptions speak of the usual namespace
			}
			text, err := object.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), namespace) {
				t.Errorf("in namespace %s: %s speaks of %s: %s", other, name, namespace, text)
			}
		}
		if _, err := rendered.As[appsv1.Deployment](objects, "Deployment/weir-controller"); err != nil {
			t.Error(err)
		}
	}
}

// TestAnotherChartDependsOnIt with the customary condition.
func TestAnotherChartDependsOnIt(t *testing.T) {
	parent := t.TempDir()
	if err := os.CopyFS(filepath.Join(parent, "charts", "weir"), os.DirFS("weir")); err != nil {
		t.Fatal(err)
	}
	const chart = "apiVersion: v2\nname: platform\nversion: 1.0.0\ndependencies:\n- {name: weir, version: 0.1.0, condition: weir.enabled}\n"
	if err := os.WriteFile(filepath.Join(parent, "Chart.yaml"), []byte(chart), 0o600); err != nil {
		t.Fatal(err)
	}
	for enabled, want := range map[string]bool{"true": true, "false": false} {
		objects, err := rendered.Helm(parent, namespace, "--set", "global.team=shop,weir.enabled="+enabled)
		if err != nil {
			t.Fatalf("enabled %s: %v", enabled, err)
		}
		if _, got := objects["Deployment/weir-controller"]; got != want {
			t.Errorf("enabled %s: a controller is installed: %v", enabled, got)
		}
	}
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // controller-runtime complains when nobody chose
	// No configuration of the user's, no plugins, no repositories.
	home, err := os.MkdirTemp("", "helm-")
	if err != nil {
		panic(err)
	}
	for _, of := range []string{"HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME"} {
		os.Setenv(of, home)
	}
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

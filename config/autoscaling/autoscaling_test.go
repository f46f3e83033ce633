// Package autoscaling checks the samples for autoscalers.
package autoscaling

import (
	"os"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/testing/apiserver"
)

func read(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// TestTheServerTakesTheObjects asks an API server, which knows the schema of KEDA's object,
// too. A misspelt field shows that it looks.
func TestTheServerTakesTheObjects(t *testing.T) {
	config := apiserver.Start(t, apiserver.WithDefinitions("testdata"))
	server, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if err := server.Create(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	server = client.WithFieldValidation(server, metav1.FieldValidationStrict)
	for _, path := range []string{"hpa.yaml", "keda.yaml"} {
		object := &unstructured.Unstructured{}
		read(t, path, &object.Object)
		if err := server.Create(t.Context(), object.DeepCopy(), client.DryRunAll); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if err := unstructured.SetNestedField(object.Object, int64(4), "spec", "minimum"); err != nil {
			t.Fatal(err)
		}
		if err := server.Create(t.Context(), object, client.DryRunAll); !apierrors.IsBadRequest(err) {
			t.Errorf("%s with a field spec.minimum: error %v, want that it is unknown", path, err)
		}
	}
}

// An adapter is the configuration of prometheus-adapter.
type adapter struct {
	Prometheus struct {
		URL  string `json:"url"`
		Port int    `json:"port"`
	} `json:"prometheus"`
	Rules struct {
		Default  *bool  `json:"default"`
		External []rule `json:"external"`
	} `json:"rules"`
}

type rule struct {
	SeriesQuery string `json:"seriesQuery"`
	Resources   struct {
		Overrides map[string]struct {
			Resource string `json:"resource"`
		} `json:"overrides"`
	} `json:"resources"`
	Name struct {
		As string `json:"as"`
	} `json:"name"`
	MetricsQuery string `json:"metricsQuery"`
}

// A scaledObject is what is used of one of KEDA.
type scaledObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ScaleTargetRef struct {
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
		MinReplicaCount int32 `json:"minReplicaCount"`
		MaxReplicaCount int32 `json:"maxReplicaCount"`
		PollingInterval int32 `json:"pollingInterval"`
		Advanced        struct {
			HorizontalPodAutoscalerConfig struct {
				Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
			} `json:"horizontalPodAutoscalerConfig"`
		} `json:"advanced"`
		Triggers []trigger `json:"triggers"`
	} `json:"spec"`
}

type trigger struct {
	Type       string                         `json:"type"`
	MetricType autoscalingv2.MetricTargetType `json:"metricType"`
	Metadata   struct {
		ServerAddress    string `json:"serverAddress"`
		Query            string `json:"query"`
		Threshold        string `json:"threshold"`
		IgnoreNullValues string `json:"ignoreNullValues"`
	} `json:"metadata"`
}

// TestTheSamplesAgree: the autoscaler asks for metrics that the adapter has, and KEDA's
// triggers are the same queries and targets.
func TestTheSamplesAgree(t *testing.T) {
	var (
		rules adapter
		hpa   autoscalingv2.HorizontalPodAutoscaler
		keda  scaledObject
	)
	read(t, "prometheus-adapter.yaml", &rules)
	read(t, "hpa.yaml", &hpa)
	read(t, "keda.yaml", &keda)
	if hpa.Namespace != keda.Namespace || hpa.Spec.ScaleTargetRef.Name != keda.Spec.ScaleTargetRef.Name ||
		*hpa.Spec.MinReplicas != keda.Spec.MinReplicaCount || hpa.Spec.MaxReplicas != keda.Spec.MaxReplicaCount {
		t.Errorf("the autoscaler scales %+v, KEDA %+v", hpa.Spec, keda.Spec)
	}
	if len(hpa.Spec.Metrics) != 2 || len(keda.Spec.Triggers) != 2 || len(rules.Rules.External) != 2 {
		t.Fatalf("%d metrics, %d triggers and %d rules, want 2 of each", len(hpa.Spec.Metrics), len(keda.Spec.Triggers), len(rules.Rules.External))
	}
	for i, rule := range rules.Rules.External {
		external, trigger := hpa.Spec.Metrics[i].External, keda.Spec.Triggers[i]
		if rule.Name.As != external.Metric.Name || rule.Resources.Overrides["namespace"].Resource != "namespace" {
			t.Errorf("rule %+v, the metric is %s", rule, external.Metric.Name)
		}
		matchers := []string{`namespace="` + hpa.Namespace + `"`}
		for label, value := range external.Metric.Selector.MatchLabels {
			if !strings.Contains(rule.SeriesQuery, label+`!=""`) {
				t.Errorf("%s is selected by %s, which %s does not ask for", rule.Name.As, label, rule.SeriesQuery)
			}
			matchers = append(matchers, label+`="`+value+`"`)
		}
		query := strings.ReplaceAll(rule.MetricsQuery, "<<.LabelMatchers>>", strings.Join(matchers, ","))
		if trigger.Type != "prometheus" || trigger.Metadata.Query != query {
			t.Errorf("KEDA asks for\n%s, the adapter for\n%s", trigger.Metadata.Query, query)
		}
		if trigger.Metadata.IgnoreNullValues != "false" {
			t.Errorf("trigger %d takes a gap for 0", i)
		}
		if trigger.MetricType != external.Target.Type {
			t.Errorf("trigger %d is of type %s, the metric of %s", i, trigger.MetricType, external.Target.Type)
		}
	}
}

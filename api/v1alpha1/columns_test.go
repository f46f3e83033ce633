package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	weirv1alpha1 "github.com/weir-dev/weir/api/v1alpha1"
)

func TestColumnsOfANewPolicyShowNoFigure(t *testing.T) {
	policy := newPolicy(t, withSpec(`mode: Shadow`))
	if err := server.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	want := []column{
		{"Mode", "Shadow"},
		{"Limits", "-"},
		{"Pods", "-"},
		{"Admitted", "-"},
		{"Rejected", "-"},
		{"Window", "-"},
		{"Overshoot", "-"},
		{"Unused", "-"},
		{"Guarantee", "<none>"},
		{"Programmed", "Unknown"},
	}
	wantWide := []column{
		{"Accepted", "Unknown"},
		{"InBound", "<none>"},
		{"Store", "Controller"},
		{"Reachable", "<none>"},
		{"Req/Trip", "-"},
	}
	compareColumns(t, policy, want, wantWide)
}

func TestColumnsOfAMeasuredPolicy(t *testing.T) {
	policy := newPolicy(t, withSpec(`mode: Enforce`))
	if err := server.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	writeStatus(t, policy, measured())
	want := []column{
		{"Mode", "Enforce"},
		{"Limits", "100/1s +1"},
		{"Pods", "12/12"},
		{"Admitted", "912/s"},
		{"Rejected", "41/s"},
		{"Window", "812/1000"},
		{"Overshoot", "0 ≤ 0"},
		{"Unused", "1.2%"},
		{"Guarantee", "Hard"},
		{"Programmed", "True"},
	}
	wantWide := []column{
		{"Accepted", "True"},
		{"InBound", "False"},
		{"Store", "Controller"},
		{"Reachable", "True"},
		{"Req/Trip", "97.3"},
	}
	compareColumns(t, policy, want, wantWide)
}

// measured returns a status with every field set.
func measured() weirv1alpha1.RateLimitPolicyStatus {
	second := metav1.NewTime(time.Unix(1_800_000_000, 0))
	window := metav1.NewMicroTime(time.UnixMicro(1_800_000_000_100_000))
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, ObservedGeneration: 1, LastTransitionTime: second}
	}
	return weirv1alpha1.RateLimitPolicyStatus{
		ObservedGeneration: 1,
		Conditions: []metav1.Condition{
			condition(weirv1alpha1.AcceptedCondition, metav1.ConditionTrue, weirv1alpha1.AcceptedReason),
			condition(weirv1alpha1.ProgrammedCondition, metav1.ConditionTrue, weirv1alpha1.ProgrammedReason),
			condition(weirv1alpha1.WithinBoundCondition, metav1.ConditionFalse, weirv1alpha1.BoundExceededReason),
			condition(weirv1alpha1.StoreReachableCondition, metav1.ConditionTrue, weirv1alpha1.ReachableReason),
			condition(weirv1alpha1.LearningCondition, metav1.ConditionTrue, weirv1alpha1.AmnesiaReason),
		},
		LastObservationTime: &second,
		Enforcement:         &weirv1alpha1.Enforcement{Desired: 12, Current: 12},
		Guarantee:           &weirv1alpha1.Guarantee{Grade: weirv1alpha1.HardGuarantee, Reason: "The ledger forgets no grant."},
		Store:               &weirv1alpha1.StoreStatus{Active: weirv1alpha1.Store{Type: weirv1alpha1.ControllerStore}, ServesFrom: &window, Failed: 1, Phase: weirv1alpha1.StoreDraining, Message: "pod a holds credits", Since: &second, Restart: weirv1alpha1.LossyRestart},
		Reset:               &weirv1alpha1.ResetStatus{Request: "all@1", Phase: weirv1alpha1.ResetDone, Message: "the counter of limit all is set back", Time: &second, At: &window},
		Limits: []weirv1alpha1.LimitStatus{{
			Name:                 "all",
			Rates:                "100/1s 3000/1m",
			AdmittedPerSecond:    new(int64(912)),
			RejectedPerSecond:    new(int64(41)),
			ActiveKeys:           new(int64(0)),
			WindowEnd:            &window,
			Window:               &weirv1alpha1.WindowStatus{Used: 0, Limit: 3000, Remaining: 0, StartedAt: window, ResetsAt: window, MeasuredAt: second},
			LearningUntil:        &second,
			Overshoot:            &weirv1alpha1.Overshoot{Bound: new(int64(0)), Observed: new(int64(0)), Worst: new(int64(3)), WorstTime: &window},
			UnderUtilization:     &weirv1alpha1.UnderUtilization{ObservedBasisPoints: new(int32(120)), WorstBasisPoints: new(int32(10000))},
			RequestsPerRoundTrip: "97.3",
			HottestKeys:          []weirv1alpha1.HotKey{{Hash: "0123456789abcdef0123456789abcdef", Admitted: 5, Refused: 0, MeasuredAt: second}},
		}},
		Summary: weirv1alpha1.Summary{
			Limits: "100/1s +1", Pods: "12/12", Admitted: "912/s", Rejected: "41/s",
			Window: "812/1000", Overshoot: "0 ≤ 0", Unused: "1.2%", RequestsPerRoundTrip: "97.3",
		},
	}
}

// writeStatus writes the status as a controller would, and expects it back whole.
func writeStatus(t *testing.T, object *unstructured.Unstructured, status any) {
	t.Helper()
	object.Object["status"] = plain(t, status)
	if err := server.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain(t, status), plain(t, object.Object["status"])); diff != "" {
		t.Errorf("the status came back changed (-want +got):\n%s", diff)
	}
}

// A column is a cell of kubectl's table and its heading.
type column struct{ Name, Cell string }

// compareColumns compares what kubectl prints of an object between its name and
// its age, and what it prints only with -o wide.
func compareColumns(t *testing.T, object *unstructured.Unstructured, want, wantWide []column) {
	t.Helper()
	table := tableOf(t, object)
	var got, wide []column
	for i, definition := range table.ColumnDefinitions {
		cell := "<none>"
		if value := table.Rows[0].Cells[i]; value != nil {
			cell = fmt.Sprint(value)
		}
		switch {
		case definition.Name == "Name" || definition.Name == "Age":
		case definition.Priority > 0:
			wide = append(wide, column{definition.Name, cell})
		default:
			got = append(got, column{definition.Name, cell})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantWide, wide); diff != "" {
		t.Errorf("wide columns (-want +got):\n%s", diff)
	}
	last := table.ColumnDefinitions[len(table.ColumnDefinitions)-1].Name
	if first := table.ColumnDefinitions[0].Name; first != "Name" || last != "Age" {
		t.Errorf("the table goes from %s to %s, want Name to Age", first, last)
	}
}

// tableOf asks for an object as kubectl get does.
func tableOf(t *testing.T, object *unstructured.Unstructured) metav1.Table {
	t.Helper()
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	discoverer, err := discovery.NewDiscoveryClientForConfig(serverConfig)
	if err != nil {
		t.Fatal(err)
	}
	text, err := discoverer.RESTClient().Get().
		AbsPath("/apis/weir.dev/v1alpha1/namespaces/default", resource.Resource, object.GetName()).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	if table.Kind != "Table" || len(table.Rows) != 1 {
		t.Fatalf("the server sent a %s of %d rows, want a Table of one", table.Kind, len(table.Rows))
	}
	return table
}

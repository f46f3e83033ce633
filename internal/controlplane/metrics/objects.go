package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// readTimeout bounds a scrape: the cache of a process that has just started blocks.
const readTimeout = 2 * time.Second

// Objects exports the status of policies, pools and budgets. All fields are needed.
type Objects struct {
	Cache client.Reader
	Leads func() bool // whether this process measures; it does not block
	// Namespaces sums policies by their namespace, without their names, so that there are
	// no more series for more policies.
	Namespaces bool
}

var _ prometheus.Collector = (*Objects)(nil)

var (
	leader = newDesc("weir_leader",
		"1 on the controller that leads, 0 on the others.", nil)
	conditions = newDesc("weir_condition",
		"1, for the status that a condition of an object has: True, False or Unknown. The other two are absent.",
		[]string{"kind", "namespace", "name", "condition", "status"})
	generations = newDesc("weir_generation",
		"Generation of an object's spec, which rises with each edit.", []string{"kind", "namespace", "name"})
)

// An output takes a figure.
type output func(d *prometheus.Desc, value float64, labels []string)

// Describe implements [prometheus.Collector].
func (*Objects) Describe(out chan<- *prometheus.Desc) {
	out <- leader
	out <- conditions
	out <- generations
	for _, table := range [][]*prometheus.Desc{policyDescs, poolDescs, budgetDescs} {
		for _, d := range table {
			out <- d
		}
	}
}

// Collect implements [prometheus.Collector].
func (o *Objects) Collect(metrics chan<- prometheus.Metric) {
	out := output(newSamples(metrics).add)
	leads := o.Leads()
	report(out, leader, one(leads))
	if !leads {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	var policies v1alpha1.RateLimitPolicyList
	var pools v1alpha1.ConcurrencyPoolList
	var budgets v1alpha1.FederatedBudgetList
	for _, list := range []client.ObjectList{&policies, &pools, &budgets} {
		if err := o.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			metrics <- prometheus.NewInvalidMetric(conditions, err) // a scrape that fails, rather than zeros
			return
		}
	}
	of, sums := out, make(sums)
	if o.Namespaces {
		of = sums.add
	}
	for i := range policies.Items {
		p := &policies.Items[i]
		reportObject(of, "RateLimitPolicy", p, p.Status.Conditions)
		reportPolicy(of, p)
	}
	sums.report(out)
	for i := range pools.Items {
		p := &pools.Items[i]
		reportObject(out, "ConcurrencyPool", p, p.Status.Conditions)
		reportPool(out, p)
	}
	for i := range budgets.Items {
		b := &budgets.Items[i]
		reportObject(out, "FederatedBudget", b, b.Status.Conditions)
		reportBudget(out, b)
	}
}

// reportObject reports the generation of an object, and each condition that it has.
func reportObject(out output, kind string, of client.Object, all []metav1.Condition) {
	report(out, generations, float64(of.GetGeneration()), kind, of.GetNamespace(), of.GetName())
	for _, c := range all {
		report(out, conditions, 1, kind, of.GetNamespace(), of.GetName(), c.Type, string(c.Status))
	}
}

func report(out output, d *prometheus.Desc, value float64, labels ...string) {
	out(d, value, labels)
}

// A whole is how figures are kept in a status.
type whole interface{ ~int32 | ~int64 }

// reportKnown reports a figure unless it is not known.
func reportKnown[T whole](out output, d *prometheus.Desc, figure *T, labels ...string) {
	if figure != nil {
		report(out, d, float64(*figure), labels...)
	}
}

// reportRatio reports basis points as a part of 1, unless they are not known.
func reportRatio(out output, d *prometheus.Desc, basisPoints *int32, labels ...string) {
	if basisPoints != nil {
		report(out, d, float64(*basisPoints)/10_000, labels...)
	}
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

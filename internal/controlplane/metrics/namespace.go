package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// combined says what becomes of a figure of all policies of a namespace. One that is not
// here says nothing about more than one policy.
var combined = map[*prometheus.Desc]func(a, b float64) float64{
	conditions:       plus, // this number has the status
	generations:      plus, // it changes when one of them does
	enforcers:        plus,
	enforcersDesired: plus,
	admitted:         plus,
	rejected:         plus,
	overshoot:        largest,
	overshootWorst:   largest,
	overshootBound:   largest,
	underutilization: largest,
	learningUntil:    largest,
}

func plus(a, b float64) float64    { return a + b }
func largest(a, b float64) float64 { return max(a, b) }

// sums are figures of namespaces.
type sums map[series]*figure

// A series is a figure with its labels.
type series struct {
	desc   *prometheus.Desc
	labels string
}

type figure struct {
	labels []string
	value  float64
}

// add takes a figure of one policy. Its labels name the namespace and then the policy and
// the limit, but those of a condition and a generation, which begin with the kind; names are
// left empty.
func (s sums) add(d *prometheus.Desc, value float64, labels []string) {
	combine := combined[d]
	if combine == nil {
		return
	}
	of := make([]string, len(labels))
	if d == conditions || d == generations {
		copy(of, labels)
		of[2] = ""
	} else {
		of[0] = labels[0]
	}
	key := series{desc: d, labels: strings.Join(of, "\xff")}
	if known := s[key]; known != nil {
		known.value = combine(known.value, value)
	} else {
		s[key] = &figure{labels: of, value: value}
	}
}

func (s sums) report(out output) {
	for of, f := range s {
		out(of.desc, f.value, f.labels)
	}
}

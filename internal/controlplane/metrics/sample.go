package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// maxLabels is the most that a figure has here.
const maxLabels = 5

// An order says where the labels of a series, which stand by their names, are among those
// that report is given.
type order struct {
	names  []string // ascending
	places []int
}

var orders = map[*prometheus.Desc]order{}

func newDesc(name, help string, labels []string) *prometheus.Desc {
	d := prometheus.NewDesc(name, help, labels, nil)
	o := order{names: slices.Sorted(slices.Values(labels))}
	for _, label := range o.names {
		o.places = append(o.places, slices.Index(labels, label))
	}
	orders[d] = o
	return d
}

// A sample is a figure in one scrape. It shares its labels with others: a metric of the
// client library has five times as many allocations, and thousands of policies have tens
// of thousands of series.
type sample struct {
	desc   *prometheus.Desc
	value  float64
	gauge  dto.Gauge
	labels int
	pairs  [maxLabels]*dto.LabelPair
}

var _ prometheus.Metric = (*sample)(nil)

// Desc implements [prometheus.Metric].
func (s *sample) Desc() *prometheus.Desc { return s.desc }

// Write implements [prometheus.Metric].
func (s *sample) Write(out *dto.Metric) error {
	out.Label, out.Gauge = s.pairs[:s.labels:s.labels], &s.gauge
	return nil
}

// samples makes those of one scrape.
type samples struct {
	out   chan<- prometheus.Metric
	known map[pair]*dto.LabelPair
}

// A pair is a label with its value.
type pair struct{ name, value string }

func newSamples(out chan<- prometheus.Metric) *samples {
	return &samples{out: out, known: map[pair]*dto.LabelPair{}}
}

// add is an output.
func (s *samples) add(d *prometheus.Desc, value float64, labels []string) {
	made := &sample{desc: d, value: value, labels: len(labels)}
	made.gauge.Value = &made.value
	of := orders[d]
	for i, place := range of.places {
		made.pairs[i] = s.pair(of.names[i], labels[place])
	}
	s.out <- made
}

func (s *samples) pair(name, value string) *dto.LabelPair {
	if known := s.known[pair{name, value}]; known != nil {
		return known
	}
	made := &dto.LabelPair{Name: new(name), Value: new(value)}
	s.known[pair{name, value}] = made
	return made
}

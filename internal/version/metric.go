package version

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric returns the metric by which both programs report their version.
func Metric() prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_build_info", Help: "1, with the version of the program and of Go that it was built with.",
		ConstLabels: prometheus.Labels{"version": String(), "goversion": runtime.Version()},
	})
	info.Set(1)
	return info
}

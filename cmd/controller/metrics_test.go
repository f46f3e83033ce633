package main

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// metricsFile lists the metrics of a controller, each with its labels. The rules, the
// dashboard and the guide are checked against it.
const metricsFile = "../../config/monitoring/controller-metrics.txt"

var (
	update  = flag.Bool("update", false, "write what TestRun finds the controller to export")
	pattern = regexp.MustCompile(`fqName: "(weir_[^"]+)".*variableLabels: \{([^}]*)\}`)
)

// expectMetrics compares the list with what a process that runs has registered. The test
// itself registers nothing.
func expectMetrics(t *testing.T) {
	g := NewWithT(t)
	registry, ok := metrics.Registry.(prometheus.Collector)
	g.Expect(ok).To(BeTrue(), "the registry describes itself")
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		registry.Describe(descs)
	}()
	var lines []string
	for d := range descs {
		if m := pattern.FindStringSubmatch(d.String()); m != nil {
			lines = append(lines, strings.TrimSpace(m[1]+" "+m[2]))
		}
	}
	slices.Sort(lines)
	text := strings.Join(slices.Compact(lines), "\n") + "\n"
	if *update {
		g.Expect(os.WriteFile(metricsFile, []byte(text), 0o600)).To(Succeed())
	}
	list, err := os.ReadFile(metricsFile)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(list)).To(Equal(text), "config/monitoring/controller-metrics.txt is not what the controller exports: "+
		"go test ./cmd/controller -run TestRun -update writes it")
}

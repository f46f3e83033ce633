package coordinator

import (
	"cmp"
	"maps"
	"regexp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// maxVersions is how many versions of sidecars are counted separately. A fleet runs two or
	// three at a time.
	maxVersions  = 16
	otherVersion = "other"
)

// versionForm matches the versions of builds. A sidecar can send any text, which must not
// become the value of a label.
var versionForm = regexp.MustCompile(`^[\w.+()-]{1,64}$`)

var connectedSidecars = prometheus.NewDesc("weir_sidecars",
	"Connected sidecars, by the version of their build; other for those beyond the 16 most frequent.", []string{"version"}, nil)

// versions reads how many sidecars of each version are connected, when it is scraped.
// Nothing is remembered of a version once the last of its sidecars is gone, and a
// replica that does not lead reports nothing.
type versions struct{ of *Coordinator }

// Describe implements [prometheus.Collector].
func (versions) Describe(out chan<- *prometheus.Desc) { out <- connectedSidecars }

// Collect implements [prometheus.Collector].
func (v versions) Collect(out chan<- prometheus.Metric) {
	t := v.of.present.Load()
	if t == nil {
		return
	}
	for version, n := range mostFrequent(t.sessions.versions()) {
		out <- prometheus.MustNewConstMetric(connectedSidecars, prometheus.GaugeValue, float64(n), version)
	}
}

// versions returns how many sessions are of each version, as sidecars call theirs.
func (ss *sessions) versions() map[string]int {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	counts := map[string]int{}
	for _, s := range ss.byPod {
		counts[s.version]++
	}
	return counts
}

// mostFrequent keeps those versions, and adds up the others.
func mostFrequent(counts map[string]int) map[string]int {
	most := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	kept, others := map[string]int{}, 0
	for _, version := range most {
		if len(kept) < maxVersions && versionForm.MatchString(version) && version != otherVersion {
			kept[version] = counts[version]
		} else {
			others += counts[version]
		}
	}
	if others > 0 {
		kept[otherVersion] = others
	}
	return kept
}

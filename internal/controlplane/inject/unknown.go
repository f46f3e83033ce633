package inject

import (
	"slices"
	"strings"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// prefixes are those of the keys that are Weir's: a key with one of them that is not
// known was meant for us and does nothing.
var prefixes = []string{"weir.dev/", tuningPrefix, "status.weir.dev/"}

// tuningPrefix is that of every annotation in tuningKeys, and of no other.
const tuningPrefix = "config.weir.dev/"

var tuningKeys = []string{
	v1alpha1.CaptureAnnotation,
	v1alpha1.NativeSidecarAnnotation,
	v1alpha1.InboundPortsAnnotation,
	v1alpha1.SkipInboundPortsAnnotation,
	v1alpha1.ShutdownGracePeriodAnnotation,
	v1alpha1.UnderscoresAnnotation,
	v1alpha1.CheckSocketAnnotation,
	v1alpha1.SidecarCPURequestAnnotation,
	v1alpha1.SidecarCPULimitAnnotation,
	v1alpha1.SidecarMemoryRequestAnnotation,
	v1alpha1.SidecarMemoryLimitAnnotation,
}

// A marker is an annotation or a label.
type marker struct{ kind, key string }

const (
	annotation = "annotation"
	label      = "label"
)

// The markers that mean something, those that Weir writes among them.
var (
	podMarkers = append(annotations(tuningKeys),
		marker{annotation, v1alpha1.InjectKey}, marker{annotation, v1alpha1.ModeAnnotation}, marker{annotation, v1alpha1.InjectedAnnotation},
		marker{label, v1alpha1.InjectKey}, marker{label, v1alpha1.EnforcerLabel})
	namespaceMarkers = annotations(tuningKeys)
)

func annotations(keys []string) []marker {
	var markers []marker
	for _, key := range keys {
		markers = append(markers, marker{annotation, key})
	}
	return markers
}

// warnOfUnknown names what looks like Weir's and means nothing: most of it is misspelt.
func (a *annotated) warnOfUnknown(podLabels map[string]string) {
	a.unknown(annotation, "", a.pod, podMarkers)
	a.unknown(label, "", podLabels, podMarkers)
	a.unknown(annotation, " of the namespace", a.namespace, namespaceMarkers)
}

func (a *annotated) unknown(kind, of string, values map[string]string, known []marker) {
	var unknown []string
	for key := range values {
		ours := slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
		if ours && !slices.Contains(known, marker{kind, key}) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	for i, key := range unknown {
		if a.full() {
			a.more += len(unknown) - i
			return
		}
		a.warn("%s %s%s is not known: %s", kind, brief(key), of, hint(nearest(marker{kind, key}, known)))
	}
}

// hint says what to write: the marker that was meant, if that is clear.
func hint(meant marker) string {
	if meant != (marker{}) {
		return "did you mean the " + meant.kind + " " + meant.key + "?"
	}
	names := make([]string, len(tuningKeys))
	for i, key := range tuningKeys {
		names[i] = strings.TrimPrefix(key, tuningPrefix)
	}
	return "known are " + v1alpha1.InjectKey + " and " + v1alpha1.ModeAnnotation + " of pods, and with " + tuningPrefix + " " + strings.Join(names, ", ")
}

// nearest returns the known mark that m most likely is, which is m itself when that is
// known, and none when more than a third of the name would have to change. Another
// prefix, or the other kind, is one change.
func nearest(m marker, known []marker) (best marker) {
	_, name, _ := strings.Cut(m.key, "/")
	least := max(1, len(name)/3) + 1
	for _, k := range known {
		_, meant, _ := strings.Cut(k.key, "/")
		if len(name)-len(meant) >= least {
			continue // at least as much would have to be left out
		}
		changes := distance(name, meant)
		if k.kind != m.kind {
			changes++
		}
		if changes < least {
			best, least = k, changes
		}
	}
	return best
}

// distance returns how many letters have to be put in, left out or changed to make one
// text the other. This is the distance of Levenshtein, by the method of Wagner and
// Fischer.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // to b[:j] from what was read of a
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

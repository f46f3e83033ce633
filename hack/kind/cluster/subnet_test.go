package cluster

import (
	"net/netip"
	"strings"
	"testing"
)

func prefixes(texts ...string) (parsed []netip.Prefix) {
	for _, text := range texts {
		parsed = append(parsed, netip.MustParsePrefix(text))
	}
	return parsed
}

func TestChoose(t *testing.T) {
	for name, test := range map[string]struct {
		wanted string // empty: any
		taken  []netip.Prefix
		want   string // empty: an error
	}{
		"the first":                    {"", nil, "10.244.0.0/16"},
		"the next":                     {"", prefixes("10.244.0.0/16", "10.96.0.0/16"), "10.245.0.0/16"},
		"one in use in part":           {"", prefixes("10.244.7.0/24", "10.245.0.1/32"), "10.246.0.0/16"},
		"none is free":                 {"", prefixes("10.0.0.0/8"), ""},
		"the wanted one":               {"10.9.0.0/16", prefixes("10.244.0.0/16"), "10.9.0.0/16"},
		"the wanted one is in use":     {"10.9.0.0/16", prefixes("10.9.9.0/24"), ""},
		"the wanted one is in another": {"10.9.0.0/16", prefixes("10.8.0.0/14"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var wanted netip.Prefix
			if test.wanted != "" {
				wanted = netip.MustParsePrefix(test.wanted)
			}
			got, err := choose(wanted, test.taken)
			if test.want == "" {
				if err == nil || !strings.Contains(err.Error(), "Pods") {
					t.Errorf("got %v, %v; want an error that names Pods", got, err)
				}
			} else if err != nil || got != netip.MustParsePrefix(test.want) {
				t.Errorf("got %v, %v; want %s", got, err, test.want)
			}
		})
	}
}

// Clusters that are created one after the other never share addresses.
func TestChooseUntilNoneIsLeft(t *testing.T) {
	var taken []netip.Prefix
	for {
		got, err := choose(netip.Prefix{}, taken)
		if err != nil {
			break
		}
		if other, ok := overlapping(got, taken); ok {
			t.Fatalf("%s overlaps %s", got, other)
		}
		taken = append(taken, got)
	}
	if len(taken) != 12 {
		t.Errorf("%d clusters found a range, want 12", len(taken))
	}
}

func TestParsePods(t *testing.T) {
	got, err := parsePods("kind: ClusterConfiguration\nnetworking:\n  podSubnet: \"10.250.0.0/16\"\n  serviceSubnet: 10.96.0.0/16\n")
	if err != nil || got != netip.MustParsePrefix("10.250.0.0/16") {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := parsePods("networking: {}\n"); err == nil {
		t.Errorf("got %v of nothing", got)
	}
}

package cluster

import (
	"net/netip"
	"strings"
	"testing"
)

func TestGuardScript(t *testing.T) {
	got := guardScript("east", "br-1", netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("10.96.0.0/16"))
	const want = "table ip weir-kind-east {}\ndelete table ip weir-kind-east\ntable ip weir-kind-east {"
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%swant it to replace the table:\n%s", got, want)
	}
	const rule = `iifname "br-1" oifname != "br-1" ip daddr { 10.244.0.0/16, 10.96.0.0/16 } jump refuse`
	if !strings.Contains(got, rule) {
		t.Errorf("lacks %s:\n%s", rule, got)
	}
}

func TestFindBridge(t *testing.T) {
	const networks = "0123456789abcdef docker0  172.17.0.0/16\n" +
		"fedcba9876543210   fc00::/64 172.18.0.0/16\n"
	for subnet, want := range map[string]string{
		"172.17.0.0/16": "docker0",
		"172.18.0.0/16": "br-fedcba987654",
		"fc00::/64":     "br-fedcba987654",
		"172.19.0.0/16": "",
	} {
		got, err := findBridge(networks, netip.MustParsePrefix(subnet))
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v; want %q", subnet, got, err, want)
		}
	}
}

package cluster

import (
	"net/netip"
	"strings"
	"testing"
)

var nodesOfTest = []nodeNetwork{
	{"a", netip.MustParseAddr("172.18.0.2"), netip.MustParsePrefix("10.244.0.0/24")},
	{"b", netip.MustParseAddr("172.18.0.3"), netip.MustParsePrefix("10.244.1.0/24")},
	{"c", netip.MustParseAddr("172.18.0.4"), netip.MustParsePrefix("10.244.2.0/24")},
}

func TestNetworkScript(t *testing.T) {
	got := networkScript(nodesOfTest[1], netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("172.18.0.0/16"))
	for _, want := range []string{
		`"ranges": [[{"subnet": "10.244.1.0/24"}]]`,
		"elements = { 10.244.0.0/16, 172.18.0.0/16 }",
		"ip saddr 10.244.1.0/24 ip daddr != @direct masquerade",
		"ip daddr 10.96.0.0/16 jump refuse",
		"\nip route replace unreachable 10.244.0.0/16\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
}

// Once the plugin's configuration is in its place, pods are created: what keeps
// packets in has to be there before.
func TestPacketsAreKeptInBeforePodsStart(t *testing.T) {
	got := networkScript(nodesOfTest[1], netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("172.18.0.0/16"))
	pods := strings.Index(got, "mv /etc/cni/net.d/weir.partial")
	for _, guard := range []string{"jump refuse", "ip route replace unreachable"} {
		if at := strings.Index(got, guard); at < 0 || at > pods {
			t.Errorf("%q stands at %d, and pods start at %d", guard, at, pods)
		}
	}
}

func TestRouteScript(t *testing.T) {
	got := routeScript(netip.MustParsePrefix("10.244.0.0/16"), without(nodesOfTest, "b"))
	const want = "nft add element ip weir direct { 10.244.0.0/16 }\n" +
		"ip route replace unreachable 10.244.0.0/16\n" +
		"ip route replace 10.244.0.0/24 via 172.18.0.2\n" +
		"ip route replace 10.244.2.0/24 via 172.18.0.4\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if len(nodesOfTest) != 3 || nodesOfTest[1].Name != "b" {
		t.Error("the list of nodes was changed")
	}
}

//go:build e2e

package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/hack/kind/cluster"
	"github.com/weir-dev/weir/hack/kind/docker"
)

// A packet to a Service or a pod that does not exist, or whose rules are on their way,
// gets an error and does not leave its node. Where a node's rules are missing, it does
// not leave the engine's bridge.
func TestNothingLeaves(t *testing.T) {
	ctx := t.Context()
	if err := cluster.Check(ctx); err != nil {
		t.Skip(err)
	}
	const name = "weir-test-guard"
	var h host
	t.Cleanup(func() { // after the cluster is deleted
		if h.image == "" {
			return
		}
		if out, err := h.nft(context.WithoutCancel(ctx), "", "list", "tables"); err != nil || strings.Contains(out, name) {
			t.Errorf("the guard of a deleted cluster is left: %s, %v", out, err)
		}
	})
	s := newSite(t, name, 0, packApp(t))
	h = newHost(t, s.Nodes()[0])
	own := s.pods[0][:strings.LastIndexByte(s.pods[0], '.')]
	unknown := []string{"10.96.200.200", own + ".250", own[:strings.LastIndexByte(own, '.')] + ".200.9"}
	watch := h.watch(t, unknown)

	for _, address := range unknown {
		s.refuses(t, address)
	}
	if bridge, outside := watch(t); bridge != 0 || outside != 0 {
		t.Errorf("%d packets came to the bridge and %d beyond it, want none", bridge, outside)
	}
	if out, err := s.Exec(ctx, s.Nodes()[0], "curl", "--silent", "--insecure", "--max-time", "5", "https://10.96.0.1/version"); err != nil {
		t.Errorf("a node does not reach a Service that is there: %v: %s", err, out)
	}

	off := "nft flush chain ip weir services; ip route del unreachable " + podRange(t, s)
	if out, err := s.Exec(ctx, s.Nodes()[0], "sh", "-ec", off); err != nil {
		t.Fatalf("take the node's rules away: %v: %s", err, out)
	}
	for _, address := range unknown {
		s.refuses(t, address)
	}
	if bridge, outside := watch(t); bridge == 0 || outside != 0 {
		t.Errorf("without the node's rules %d packets came to the bridge and %d beyond it, want some and none", bridge, outside)
	}
}

// refuses checks that an address fails at once, from the node and from a pod.
func (s site) refuses(t *testing.T, address string) {
	t.Helper()
	for from, target := range map[string]string{
		"the node": "http://" + address + "/",
		"a pod":    "http://" + s.pods[0] + ":8080/fetch?url=" + url.QueryEscape("http://"+address+"/"),
	} {
		began := time.Now()
		out, err := s.Exec(t.Context(), s.Nodes()[0], "curl", "--silent", "--show-error", "--fail-with-body", "--max-time", "10", target)
		took := time.Since(began)
		text := fmt.Sprint(string(out), err)
		refused := strings.Contains(text, "refused") || strings.Contains(text, "o route to host") || strings.Contains(text, "ouldn't connect") || strings.Contains(text, "nreachable")
		if err == nil || !refused || took > 4*time.Second {
			t.Errorf("%s from %s: %s after %s, want an error at once", address, from, text, took)
		}
		t.Logf("%s from %s: %s", address, from, took.Round(time.Millisecond))
	}
}

// podRange returns the range of all pods that the node refuses.
func podRange(t *testing.T, s site) string {
	out, err := s.Exec(t.Context(), s.Nodes()[0], "ip", "route", "show", "type", "unreachable")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(out))
	if len(fields) < 2 {
		t.Fatalf("the node has no unreachable route: %q", out)
	}
	return fields[1]
}

// host is the network of the engine's host.
type host struct{ image, bridge string }

func newHost(t *testing.T, node string) host {
	out, err := docker.Output(t.Context(), "inspect", "--format", "{{.Config.Image}} {{range .NetworkSettings.Networks}}{{.NetworkID}}{{end}}", node)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(out)
	return host{image: fields[0], bridge: "br-" + fields[1][:12]}
}

func (h host) nft(ctx context.Context, script string, args ...string) (string, error) {
	var out bytes.Buffer
	run := append([]string{"run", "--rm", "--interactive", "--privileged", "--network", "host", "--entrypoint", "nft", h.image}, args...)
	err := docker.Pipe(ctx, strings.NewReader(script), &out, run...)
	return out.String(), err
}

// watch counts packets to the addresses that come from a node to the bridge, and those
// that are about to leave it otherwise. The latter are dropped, so that the test lets
// nothing out when the guard does.
func (h host) watch(t *testing.T, addresses []string) func(*testing.T) (bridge, outside int) {
	const table = "weir-test-watch"
	to := fmt.Sprintf("ip daddr { %s }", strings.Join(addresses, ", "))
	_, err := h.nft(t.Context(), fmt.Sprintf(`table ip %[1]s {
    counter inside {}
    counter outside {}
    chain prerouting {
        type filter hook prerouting priority -400
        iifname %[2]q %[3]s counter name inside
    }
    chain forward {
        type filter hook forward priority filter + 10
        %[3]s counter name outside drop
    }
    chain postrouting {
        type filter hook postrouting priority filter
        %[3]s counter name outside drop
    }
}`, table, h.bridge, to), "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := h.nft(context.WithoutCancel(t.Context()), "", "delete", "table", "ip", table); err != nil {
			t.Error(err)
		}
	})
	return func(t *testing.T) (bridge, outside int) {
		t.Helper()
		out, err := h.nft(t.Context(), "", "list", "counters", "table", "ip", table)
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int{}
		for _, m := range regexp.MustCompile(`counter (\w+) \{\s*packets (\d+)`).FindAllStringSubmatch(out, -1) {
			var n int
			if _, err := fmt.Sscan(m[2], &n); err != nil {
				t.Fatal(err)
			}
			counts[m[1]] = n
		}
		if len(counts) != 2 {
			t.Fatalf("counters: %s", out)
		}
		return counts["inside"], counts["outside"]
	}
}

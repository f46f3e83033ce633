package sidecar

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/probe"
	"github.com/weir-dev/weir/internal/sidecar/proxy"
	"github.com/weir-dev/weir/internal/version"
)

func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// pod is what the control plane sets for every sidecar.
func pod(changes ...string) map[string]string {
	vars := map[string]string{
		"WEIR_POD_NAMESPACE": "shop", "WEIR_POD_NAME": "checkout-1", "WEIR_POD_UID": "uid", "WEIR_CA_BUNDLE": "pem", "WEIR_PROBE_TOKEN": "T0KEN",
	}
	for i := 0; i < len(changes); i += 2 {
		vars[changes[i]] = changes[i+1]
	}
	return vars
}

func TestUsage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "flags.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printUsage(&out); err != nil {
		t.Fatal(err)
	}
	if want := "```\n" + out.String() + "```\n"; !strings.Contains(string(page), want) {
		t.Errorf("docs/reference/flags.md lacks:\n%s", want)
	}
}

func TestLoadConfig(t *testing.T) {
	args := []string{
		"--fleet-address=weir-fleet.weir-system.svc:15030", "--fleet-server-name=weir-fleet.weir-system.svc",
		"--inbound=15006:8080", "--inbound=15007:9090", "--check-address=127.0.0.1:15010", "--check-socket=/var/run/weir.dev/check.sock", "--rls-address=127.0.0.1:15011", "--admin-address=:15020",
		"--token-file=/var/run/secrets/weir.dev/token", "--shutdown-grace-period=30s", "--linger=25s",
		`--probe={"container":"app","kind":"readiness","timeoutSeconds":1,"tcp":{"port":8080}}`,
		"--otlp-endpoint=collector.monitoring:4317", "--underscores=refuse",
	}
	want := config{
		fleetAddress: "weir-fleet.weir-system.svc:15030", fleetServerName: "weir-fleet.weir-system.svc",
		tokenFile: "/var/run/secrets/weir.dev/token", caBundle: "pem",
		inbound: []inbound{{":15006", "127.0.0.1:8080"}, {":15007", "127.0.0.1:9090"}}, appAddress: "127.0.0.1", linger: 25 * time.Second,
		probes: []probe.Target{{Container: "app", Kind: probe.Readiness, TimeoutSeconds: 1, TCP: &probe.TCP{Port: 8080}}}, probeToken: "T0KEN",
		checkAddress: "127.0.0.1:15010", checkSocket: "/var/run/weir.dev/check.sock", rlsAddress: "127.0.0.1:15011", adminAddress: ":15020", grace: 30 * time.Second,
		otlpEndpoint: "collector.monitoring:4317", underscores: proxy.RefuseUnderscores,
		namespace: "shop", pod: "checkout-1", podUID: "uid", mode: enforce.Enforce,
	}
	taken := want
	taken.capture = "redirect"
	redirected := want
	redirected.appAddress = "fd00::7"
	redirected.inbound = []inbound{{":15006", "[fd00::7]:8080"}, {":15007", "[fd00::7]:9090"}}
	sandboxed := want
	sandboxed.appAddress = "127.0.0.9"
	sandboxed.tokenFile = "/tmp/pod/var/run/secrets/weir.dev/token"
	sandboxed.checkSocket = "/tmp/pod/var/run/weir.dev/check.sock"
	sandboxed.inbound = []inbound{{"127.0.0.9:15006", "127.0.0.9:8080"}, {"127.0.0.9:15007", "127.0.0.9:9090"}}
	sandboxed.checkAddress, sandboxed.rlsAddress, sandboxed.adminAddress = "127.0.0.9:15010", "127.0.0.9:15011", "127.0.0.9:15020"
	for name, tc := range map[string]struct {
		args []string
		env  map[string]string
		want config
	}{
		"in a pod":                        {nil, pod(), want},
		"in a pod that is captured":       {nil, pod("WEIR_CAPTURE", "redirect"), taken},
		"in a pod whose app is elsewhere": {[]string{"--app-address=fd00::7"}, pod(), redirected},
		"in a sandbox":                    {nil, pod("WEIR_SANDBOX_DIR", "/tmp/pod", "WEIR_SANDBOX_IP", "127.0.0.9"), sandboxed},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := loadConfig(append(slices.Clip(args), tc.args...), environment(tc.env))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(config{}, inbound{})); diff != "" {
				t.Errorf("config differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadConfigNamesTheFieldAndTheCure(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		env  map[string]string
		want []string
	}{
		"an unknown flag":           {[]string{"--inbounds=1:2"}, pod(), []string{"inbounds", "--help"}},
		"an argument":               {[]string{"run"}, pod(), []string{`"run"`, "--help"}},
		"half a pair of ports":      {[]string{"--inbound=15006"}, pod(), []string{"--inbound", "LISTENPORT:APPPORT"}},
		"a port out of range":       {[]string{"--inbound=15006:99999"}, pod(), []string{"--inbound", "99999"}},
		"no port to check at":       {[]string{"--check-address=localhost"}, pod(), []string{"--check-address", "HOST:PORT"}},
		"a socket somewhere":        {[]string{"--check-socket=check.sock"}, pod(), []string{"--check-socket", "absolute path"}},
		"a socket with a long path": {[]string{"--check-socket=/" + strings.Repeat("a", 107)}, pod(), []string{"--check-socket", "107 bytes"}},
		"no time":                   {[]string{"--shutdown-grace-period=30"}, pod(), []string{"shutdown-grace-period"}},
		"time that runs backwards":  {[]string{"--shutdown-grace-period=-1s"}, pod(), []string{"--shutdown-grace-period", "0s or more"}},
		"no choice":                 {[]string{"--underscores=allow"}, pod(), []string{"--underscores", "drop, pass or refuse"}},
		"a linger backwards":        {[]string{"--linger=-1s"}, pod(), []string{"--linger", "0s or more"}},
		"no app":                    {[]string{"--app-address="}, pod(), []string{"--app-address", "the pod"}},
		"a probe of nothing":        {[]string{`--probe={"container":"app","kind":"liveness"}`}, pod(), []string{"-probe", "set one"}},
		"a probe for anybody":       {[]string{`--probe={"container":"app","kind":"liveness","tcp":{"port":1}}`}, pod("WEIR_PROBE_TOKEN", ""), []string{"WEIR_PROBE_TOKEN", "--probe", "set it"}},
		"no namespace":              {nil, pod("WEIR_POD_NAMESPACE", ""), []string{"WEIR_POD_NAMESPACE", "set it"}},
		"no pod":                    {[]string{"--fleet-address=a:1"}, pod("WEIR_POD_NAME", ""), []string{"WEIR_POD_NAME", "set it"}},
		"no UID":                    {[]string{"--fleet-address=a:1"}, pod("WEIR_POD_UID", ""), []string{"WEIR_POD_UID", "set it"}},
		"no certificates":           {[]string{"--fleet-address=a:1"}, pod("WEIR_CA_BUNDLE", ""), []string{"WEIR_CA_BUNDLE", "PEM"}},
		"no port of the controller": {[]string{"--fleet-address=a"}, pod(), []string{"--fleet-address", "HOST:PORT"}},
		"a collector by URL":        {[]string{"--otlp-endpoint=http://a:4317"}, pod(), []string{"--otlp-endpoint", "HOST:PORT", "scheme"}},
		"an unknown mode":           {nil, pod("WEIR_MODE", "Shadow"), []string{"WEIR_MODE", "shadow"}},
		"a sandbox without address": {nil, pod("WEIR_SANDBOX_IP", "localhost"), []string{"WEIR_SANDBOX_IP", "IP address"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadConfig(tc.args, environment(tc.env))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

func TestVersion(t *testing.T) {
	var out, errOut bytes.Buffer
	if err := Run(t.Context(), []string{"--version"}, environment(nil), &out, &errOut); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != version.String()+"\n" || errOut.Len() > 0 {
		t.Errorf("it prints %q and logs %q", got, errOut.String())
	}
}

func TestHelp(t *testing.T) {
	for _, arg := range []string{"--help", "-h"} {
		var out bytes.Buffer
		if err := Run(t.Context(), []string{arg}, environment(nil), &out, &out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"--inbound", "--fleet-address", "WEIR_SNAPSHOT", "127.0.0.1:15010", "30s"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("help does not mention %s", want)
			}
		}
		if strings.Contains(out.String(), "%!") {
			t.Errorf("help is malformed:\n%s", out.String())
		}
	}
}

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/version"
)

func environment(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestDefaults(t *testing.T) {
	o, err := parse([]string{"--sidecar-image=weir-sidecar@sha256:0"}, environment(map[string]string{
		"POD_NAMESPACE": "limits", "POD_NAME": "weir-controller-0", "KUBECONFIG": "/etc/kubeconfig",
	}), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]string{
		"namespace":     {o.namespace, "limits"},
		"pod":           {o.podName, "weir-controller-0"},
		"kubeconfig":    {o.kubeconfig, "/etc/kubeconfig"},
		"fleet address": {o.fleetAddress, "weir-fleet.limits.svc:15030"},
		"webhook name":  {o.service(webhookService), "weir-webhook.limits.svc"},
		"hub address":   {o.federationBindAddress, ":15040"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %q, want %q", what, pair[0], pair[1])
		}
	}
}

func TestRefusedOptions(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string // part of the error
	}{
		"an image is needed":                     {nil, "--sidecar-image is empty"},
		"a component is one of two":              {[]string{"--components=webhooks,leader"}, `--components has "leader"`},
		"a component is needed":                  {[]string{"--components="}, "--components is empty"},
		"arguments are refused":                  {[]string{"serve"}, `unexpected argument "serve"`},
		"unknown flags are refused":              {[]string{"--image=x"}, "unknown flag"},
		"an address needs a port":                {[]string{"--fleet-address=weir-fleet"}, `--fleet-address is "weir-fleet"`},
		"an address needs a host":                {[]string{"--fleet-address=:15030"}, `--fleet-address is ":15030"`},
		"a replica is an address":                {[]string{"--fleet-replicas=weir-0:1,weir-1"}, `--fleet-replicas has "weir-1"`},
		"sidecars need a port":                   {[]string{"--fleet-bind-address=fleet"}, `--fleet-bind-address is "fleet"`},
		"other clusters need a port":             {[]string{"--federation-bind-address=hub"}, `--federation-bind-address is "hub"`},
		"capture is of a known kind":             {[]string{"--default-capture=iptables"}, `--default-capture is "iptables"`},
		"a collector is an address":              {[]string{"--sidecar-otlp-endpoint=http://traces:4317"}, `--sidecar-otlp-endpoint is "http://traces:4317"`},
		"metrics have a known form":              {[]string{"--policy-metrics=None"}, `--policy-metrics is "None"`},
		"requests are needed":                    {[]string{"--api-requests=0"}, "--api-requests is 0"},
		"a port is a number of 16 bits":          {[]string{"--webhook-port=70000"}, "--webhook-port is 70000"},
		"the deadline lies within the lease":     {[]string{"--leader-elect-renew-deadline=15s"}, "two leaders overlap"},
		"a pause lies within the deadline":       {[]string{"--leader-elect-retry-period=10s"}, "--leader-elect-retry-period is 10s"},
		"a pause is positive":                    {[]string{"--leader-elect-retry-period=0s"}, "--leader-elect-retry-period is 0s"},
		"logs are JSON or text":                  {[]string{"--log-format=xml"}, `--log-format is "xml"`},
		"a pull policy is one of three":          {[]string{"--sidecar-image-pull-policy=always"}, `--sidecar-image-pull-policy is "always"`},
		"a pull secret has a name":               {[]string{"--sidecar-image-pull-secrets=registry,My Secret"}, `--sidecar-image-pull-secrets has "My Secret"`},
		"sidecars request CPU":                   {[]string{"--sidecar-cpu-request=0"}, `--sidecar-cpu-request is "0"`},
		"a quantity is one":                      {[]string{"--sidecar-memory-request=64MB!"}, `--sidecar-memory-request is "64MB!"`},
		"a limit is not negative":                {[]string{"--sidecar-cpu-limit=-1"}, `--sidecar-cpu-limit is "-1"`},
		"a request is within its limit":          {[]string{"--sidecar-memory-request=256Mi"}, "--sidecar-memory-request is 256Mi, above --sidecar-memory-limit 128Mi"},
		"what is allowed are CIDRs":              {[]string{"--allow-store-cidrs=10.0.0.0/8,redis"}, `--allow-store-cidrs has "redis": write CIDRs`},
		"what is denied are CIDRs":               {[]string{"--deny-store-cidrs=::ffff:10.0.0.0/104"}, `--deny-store-cidrs has "::ffff:10.0.0.0/104": write CIDRs`},
		"a CIDR is of a network":                 {[]string{"--allow-store-cidrs=10.1.2.3/8"}, "write 10.0.0.0/8"},
		"a rule of ids has a namespace":          {[]string{"--federation-ids=shop=acme/*,acme"}, `--federation-ids has "acme": write NAMESPACE=PATTERN`},
		"every option that is wrong is reported": {[]string{"--log-format=xml", "--webhook-port=0"}, "--webhook-port is 0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.args, environment(nil), &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestResourcesOfSidecars(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want corev1.ResourceRequirements
	}{
		"as ever": {nil, inject.DefaultResources()},
		"chosen": {
			[]string{"--sidecar-cpu-request=50m", "--sidecar-cpu-limit=1", "--sidecar-memory-request=64Mi", "--sidecar-memory-limit=0"},
			corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			},
		},
	} {
		o, err := parse(append(tc.args, "--sidecar-image=x"), environment(nil), &bytes.Buffer{})
		if err != nil {
			t.Fatal(err)
		}
		if got := o.sidecar.requirements(); !equality.Semantic.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestServingOtherClustersCanBeTurnedOff(t *testing.T) {
	for address, want := range map[string]bool{":15040": true, "127.0.0.1:0": true, "": false, "0": false} {
		o, err := parse([]string{"--sidecar-image=x", "--federation-bind-address=" + address}, environment(nil), &bytes.Buffer{})
		if err != nil || o.servesMembers() != want {
			t.Errorf("%q: serves %t, %v; want %t", address, o.servesMembers(), err, want)
		}
	}
}

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	if _, err := parse([]string{"--help"}, environment(nil), &out); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("error is %v, want ErrHelp", err)
	}
	for _, flag := range []string{"--sidecar-image", "--sidecar-memory-limit", "--fleet-address", "--certificate-sans", "--federation-sans", "--federation-ids", "POD_NAME"} {
		if !strings.Contains(out.String(), flag) {
			t.Errorf("the help does not name %s", flag)
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "flags.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "```\n" + out.String() + "```\n"; !strings.Contains(string(page), want) {
		t.Errorf("docs/reference/flags.md lacks:\n%s", want)
	}
	if err := run(t.Context(), []string{"--help"}, environment(nil), &out, &out); err != nil {
		t.Errorf("asking for help is an error: %v", err)
	}
}

func TestVersion(t *testing.T) {
	var out, errOut bytes.Buffer
	if err := run(t.Context(), []string{"--version"}, environment(nil), &out, &errOut); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != version.String()+"\n" || errOut.Len() > 0 {
		t.Errorf("it prints %q and logs %q", got, errOut.String())
	}
}

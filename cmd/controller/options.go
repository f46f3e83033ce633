package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/version"
)

// options is the command line.
type options struct {
	kubeconfig  string
	namespace   string
	podName     string // from the environment only: there is no pod to name on a command line
	clusterName string
	components  []string // what of the control plane this process is

	fleetAddress     string
	fleetBindAddress string
	fleetReplicas    []string // beside those that are found by their pods
	sidecarImage     string
	sidecarPull      string   // Always, IfNotPresent or Never; empty: Kubernetes chooses
	sidecarSecrets   []string // names of pull secrets
	sidecar          resourceFlags
	defaultCapture   string
	traceCollector   string // host:port; empty: sidecars trace nothing

	federationBindAddress string // empty or 0: members are not served
	federationSANs        []string
	federationIDs         []string    // rules of ids that budgets may have
	budgetIDs             resolve.IDs // the same, parsed

	allowStores, denyStores []string // CIDRs of addresses at which stores, hubs and key sets may, and may not be

	webhookHost       string
	webhookPort       int
	webhookClientCA   string // file; empty: callers are not asked for a certificate
	mutatingWebhook   string
	validatingWebhook string
	certificateSANs   []string
	metricsAddress    string
	healthAddress     string
	policyMetrics     string
	profileAddress    string
	apiRequests       int // a second
	leaderElect       bool
	leaseDuration     time.Duration
	renewDeadline     time.Duration
	retryPeriod       time.Duration
	logFormat         string
	logLevel          int
}

// pullPolicies are what may be chosen for the sidecar's image.
var pullPolicies = []corev1.PullPolicy{"", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}

// Parts of the control plane, which one process or two may be.
const (
	webhooksComponent    = "webhooks"
	coordinatorComponent = "coordinator"
)

const usage = `The control plane of Weir: webhooks on every replica, reconciler and coordinator on the leader. --components
has only one of both run in this process, so that requests to the webhooks cannot exhaust the coordinator.

Environment: POD_NAMESPACE is the default of --namespace. When POD_NAME is set, the leader labels that pod
weir.dev/leader=true, which is what the Service weir-fleet selects.

Flags:
`

// errVersion is what parse returns when nothing but the version is asked for.
var errVersion = errors.New("the version is asked for")

// parse reads the command line. It returns pflag.ErrHelp after writing the help to out,
// and errVersion after writing the version.
func parse(args []string, env func(string) string, out io.Writer) (options, error) {
	o := options{podName: env("POD_NAME")}
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(out)
	flags.Usage = func() { _, _ = fmt.Fprint(out, usage+flags.FlagUsagesWrapped(100)) }

	flags.StringVar(&o.kubeconfig, "kubeconfig", env("KUBECONFIG"), "kubeconfig `file`; by default $KUBECONFIG, else the service account of the pod")
	flags.StringVar(&o.namespace, "namespace", cmp.Or(env("POD_NAMESPACE"), "weir-system"), "namespace the controller runs in: its lease, its certificates")
	flags.StringVar(&o.clusterName, "cluster-name", "", "`name` that prefixes every counter, so that clusters never share one, and that FederatedBudgets list as a member; default: UID of the namespace kube-system")
	flags.StringSliceVar(&o.components, "components", []string{webhooksComponent, coordinatorComponent}, "`parts` that this process runs, comma-separated: webhooks, coordinator (with the reconcilers and the hub), or both")

	flags.StringVar(&o.fleetAddress, "fleet-address", "", "`host:port` that injected sidecars connect to; default: weir-fleet.<namespace>.svc:15030")
	flags.StringVar(&o.fleetBindAddress, "fleet-bind-address", ":15030", "`address` sidecars connect to: the leader serves them, and at other replicas they wait until one of these leads")
	flags.StringSliceVar(&o.fleetReplicas, "fleet-replicas", nil, "`addresses` host:port at which sidecars reach the replicas that run outside of pods, comma-separated; this one's --fleet-address and --fleet-bind-address are left out. Those in pods are found by themselves")
	flags.StringVar(&o.sidecarImage, "sidecar-image", "", "`image` of injected sidecars; pin it by digest (required with webhooks)")
	flags.StringVar(&o.sidecarPull, "sidecar-image-pull-policy", "", "`policy` by which nodes pull it: Always, IfNotPresent or Never; empty: Kubernetes chooses by the tag")
	flags.StringSliceVar(&o.sidecarSecrets, "sidecar-image-pull-secrets", nil, "`names` of Secrets that injected pods are given beside their own to pull it with, comma-separated; each namespace needs one of its own")
	o.sidecar.add(flags)

	flags.StringVar(&o.defaultCapture, "default-capture", string(inject.CaptureAuto), "`kind` of capture where neither the pod nor its namespace chooses one: auto, redirect, port or explicit. Choose port where something besides namespace labels forbids NET_ADMIN")

	flags.StringVar(&o.traceCollector, "sidecar-otlp-endpoint", "", "`host:port` of an OpenTelemetry collector that injected sidecars send traces to, over gRPC without encryption; empty: no traces")

	flags.StringVar(&o.federationBindAddress, "federation-bind-address", ":15040", "`address` the leader serves other clusters on, members of the FederatedBudgets that it keeps; 0 turns it off")
	flags.StringSliceVar(&o.federationSANs, "federation-sans", nil, "further DNS `names` or IP addresses under which other clusters reach this hub, comma-separated")

	flags.StringSliceVar(&o.federationIDs, "federation-ids", nil, "`rules` NAMESPACE=PATTERN, comma-separated, of the ids that FederatedBudgets of a namespace may have: an id, the beginning of ids such as acme/*, or * for every id. shop= lets the namespace shop have none, and the namespace * stands for all that no rule names; default: ids that begin with the namespace and a slash. All processes need the same")

	flags.StringSliceVar(&o.allowStores, "allow-store-cidrs", nil, "`CIDRs`, comma-separated, of addresses to which the controller connects for stores, hubs and key sets that policies and budgets name, although it would not: loopback, link-local and other addresses of no ordinary machine, those of the API server's machine, what --deny-store-cidrs has, and any at which a key set is read without encryption")
	flags.StringSliceVar(&o.denyStores, "deny-store-cidrs", nil, "further `CIDRs`, comma-separated, of addresses to which it does not connect for them. With 0.0.0.0/0,::/0 only those of --allow-store-cidrs are left")

	flags.StringVar(&o.webhookHost, "webhook-host", "", "`address` the webhooks listen on; default: all")
	flags.IntVar(&o.webhookPort, "webhook-port", 9443, "`port` the webhooks listen on")
	flags.StringVar(&o.webhookClientCA, "webhook-client-ca", "", "PEM `file` of authorities: the webhooks answer only callers that have a certificate of one of them, which the API server needs a kubeconfig for, see its --admission-control-config-file; empty: any caller that reaches the port")
	flags.StringVar(&o.mutatingWebhook, "mutating-webhook", "weir-injector", "`name` of the MutatingWebhookConfiguration whose CA bundle is kept up to date")
	flags.StringVar(&o.validatingWebhook, "validating-webhook", "weir-validator", "`name` of the ValidatingWebhookConfiguration whose CA bundle is kept up to date")
	flags.StringSliceVar(&o.certificateSANs, "certificate-sans", nil, "further DNS `names` or IP addresses of the serving certificate, comma-separated")

	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "`address` of /metrics; 0 turns it off")
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "`address` of /healthz and /readyz; 0 turns it off")

	flags.StringVar(&o.policyMetrics, "policy-metrics", "Each", "`form` of the metrics of policies: Each has series of every policy and limit; Namespace has those of a namespace together, for thousands of policies")
	flags.StringVar(&o.profileAddress, "profile-bind-address", "0", "`address` of /debug/pprof/, which says where CPU time and memory go; 0 turns it off. Access needs no authentication: bind 127.0.0.1")

	flags.IntVar(&o.apiRequests, "api-requests", 200, "`number` of requests a second that the controller sends to the API server at most, twice as many at once; first statuses, other statuses and Events each have as many, and leader election has its own")

	flags.BoolVar(&o.leaderElect, "leader-elect", true, "elect one leader among the replicas; turn off only for a single replica")
	flags.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second, "how long the others wait for a silent leader")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "how long the leader tries to renew before it steps down")
	flags.DurationVar(&o.retryPeriod, "leader-elect-retry-period", time.Second, "pause between tries; a leader that stops in order is followed within 2.2 of them")

	flags.StringVar(&o.logFormat, "log-format", "json", "`format`: json or text")
	flags.IntVar(&o.logLevel, "log-level", 0, "0 for what operators need, higher for more")

	asked := flags.Bool("version", false, "print the version and exit")

	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if *asked {
		return options{}, cmp.Or(printVersion(out), errVersion)
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q: the controller takes flags only", flags.Arg(0))
	}
	if o.fleetAddress == "" {
		o.fleetAddress = "weir-fleet." + o.namespace + ".svc:15030"
	}
	return o, o.validate()
}

func printVersion(out io.Writer) error {
	_, err := fmt.Fprintln(out, version.String())
	return err
}

// validate reports every option that cannot work, with its cure.
func (o *options) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(o.policyMetrics == "Each" || o.policyMetrics == "Namespace", "--policy-metrics is %q: write Each or Namespace", o.policyMetrics)
	check(o.apiRequests > 0, "--api-requests is %d: write at least 1", o.apiRequests)
	for _, name := range o.components {
		check(name == webhooksComponent || name == coordinatorComponent, "--components has %q: write webhooks, coordinator, or both", name)
	}
	check(len(o.components) > 0, "--components is empty: write webhooks, coordinator, or both")
	check(!o.runs(webhooksComponent) || o.sidecarImage != "", "--sidecar-image is empty: name the image that injected pods run")
	check(slices.Contains(pullPolicies, corev1.PullPolicy(o.sidecarPull)),
		"--sidecar-image-pull-policy is %q: write Always, IfNotPresent or Never", o.sidecarPull)
	for _, name := range o.sidecarSecrets {
		check(len(validation.IsDNS1123Subdomain(name)) == 0, "--sidecar-image-pull-secrets has %q: write names of Secrets", name)
	}
	for _, err := range o.sidecar.mistakes() {
		check(false, "%w", err)
	}
	var notIDs error
	o.budgetIDs, notIDs = resolve.ParseIDs(o.federationIDs)
	check(notIDs == nil, "--federation-ids has %w", notIDs)
	_, notAllowed := prefixes("allow-store-cidrs", o.allowStores)
	check(notAllowed == nil, "%w", notAllowed)
	_, notDenied := prefixes("deny-store-cidrs", o.denyStores)
	check(notDenied == nil, "%w", notDenied)
	check(slices.Contains(inject.Captures, inject.Capture(o.defaultCapture)),
		"--default-capture is %q: write auto, redirect, port or explicit", o.defaultCapture)
	check(o.traceCollector == "" || isHostPort(o.traceCollector),
		"--sidecar-otlp-endpoint is %q: write host:port without a scheme, such as collector.monitoring:4317", o.traceCollector)
	check(isHostPort(o.fleetAddress), "--fleet-address is %q: write host:port, as sidecars can reach it", o.fleetAddress)
	for _, address := range o.fleetReplicas {
		check(isHostPort(address), "--fleet-replicas has %q: write host:port, as sidecars can reach it", address)
	}
	check(isBindAddress(o.fleetBindAddress), "--fleet-bind-address is %q: write host:port or :port", o.fleetBindAddress)
	check(!o.servesMembers() || isBindAddress(o.federationBindAddress),
		"--federation-bind-address is %q: write host:port or :port, or 0 to serve no other cluster", o.federationBindAddress)
	check(isPort(o.webhookPort), "--webhook-port is %d: write a port from 1 to 65535", o.webhookPort)
	check(o.logFormat == "json" || o.logFormat == "text", "--log-format is %q: write json or text", o.logFormat)
	check(o.renewDeadline < o.leaseDuration,
		"--leader-elect-renew-deadline is %s: it must be shorter than the lease duration %s, or two leaders overlap", o.renewDeadline, o.leaseDuration)
	check(o.retryPeriod > 0 && o.retryPeriod < o.renewDeadline,
		"--leader-elect-retry-period is %s: it must be positive and shorter than the renew deadline %s", o.retryPeriod, o.renewDeadline)
	return errors.Join(errs...)
}

// runs reports whether a part of the control plane runs in this process.
func (o *options) runs(component string) bool { return slices.Contains(o.components, component) }

// servesMembers reports whether the leader serves other clusters.
func (o *options) servesMembers() bool {
	return o.federationBindAddress != "" && o.federationBindAddress != "0"
}

// isBindAddress reports whether one can listen there; port 0 is any that is free.
func isBindAddress(address string) bool {
	_, port, err := net.SplitHostPort(address)
	n, notNumber := strconv.Atoi(port)
	return err == nil && notNumber == nil && (n == 0 || isPort(n))
}

func isHostPort(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && isPort(n)
}

func isPort(n int) bool { return n > 0 && n < 1<<16 }

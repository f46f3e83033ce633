package sidecar

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/probe"
	"github.com/weir-dev/weir/internal/sidecar/proxy"
)

// config is all that a sidecar is given when it starts.
type config struct {
	fleetAddress    string // host:port of the controller; empty to run on the snapshot alone
	fleetServerName string
	tokenFile       string
	caBundle        string

	inbound      []inbound
	appAddress   string // host that the app is found at
	probes       []probe.Target
	probeToken   string // that a request for one of the probes has to name
	checkAddress string
	checkSocket  string // path of a Unix socket; empty: none
	rlsAddress   string // empty: not served
	adminAddress string
	grace        time.Duration
	linger       time.Duration
	underscores  proxy.Underscores
	otlpEndpoint string // host:port of a collector of traces; empty to trace nothing

	namespace, pod, podUID string
	capture                string // how requests come to the sidecar, for the controller to know
	mode                   enforce.Mode
	snapshot               string // packed, empty for none
}

// An inbound is a port that is served in front of one of the app's.
type inbound struct{ listen, app string } // host:port

const usage = `Weir sidecar: limits requests to the app in its pod.

Usage:
  sidecar [flags]
  sidecar capture --redirect APPPORT:LISTENPORT ...
  sidecar wait [--admin-address HOST:PORT]
  sidecar leave [--check-address HOST:PORT]

The second form has the pod's connections redirected to the sidecar and ends; the third
ends when the sidecar at the address is ready; the fourth reports to it that its pod is about
to end. Each prints more with --help.

Flags:
  --fleet-address HOST:PORT      controller to take policies from; without it, policies
                                 come from WEIR_SNAPSHOT alone
  --fleet-server-name NAME       name in the controller's certificate (default: the host
                                 of --fleet-address)
  --token-file PATH              token to authenticate to the controller with
                                 (default %s)
  --inbound LISTENPORT:APPPORT   serve LISTENPORT in front of the app's APPPORT; repeatable
  --app-address HOST             where the app is (default %s)
  --probe JSON                   a question that the kubelet puts by way of the admin port;
                                 repeatable; written by the injector
  --check-address HOST:PORT      where the app asks POST /v1/check, and users with access to
                                 the pod GET /debug/config and
                                 /debug/refusals (default %s)
  --check-socket PATH            Unix socket that serves the same, beside --check-address;
                                 without it, none does
  --rls-address HOST:PORT        where an Envoy in the pod asks its rate limit service,
                                 version 3; empty to serve none (default %s)
  --admin-address HOST:PORT      where /metrics, /readyz and /livez are served
                                 (default %s)
  --shutdown-grace-period TIME   how long requests may take to finish after SIGTERM
                                 (default %s)
  --linger TIME                  how long requests are accepted after SIGTERM, before that,
                                 while the app accepts them; for a sidecar that has to
                                 stop at the same time as the app (default 0s)
  --underscores drop|pass|refuse how to treat header fields with underscores in their
                                 names, but those of gRPC (default %s)
  --otlp-endpoint HOST:PORT      collector that traces are sent to, over gRPC; without it,
                                 nothing is traced
  --version                      print the version and end

Environment:
  WEIR_POD_NAMESPACE             namespace of the pod; always needed
  WEIR_POD_NAME, WEIR_POD_UID    the pod; needed with --fleet-address
  WEIR_CA_BUNDLE                 PEM certificates that the controller's is checked against;
                                 needed with --fleet-address
  WEIR_PROBE_TOKEN               secret part of the path that --probe is answered at;
                                 needed with --probe
  WEIR_SNAPSHOT                  policies to begin with, encoded, gzip, base64; parts that
                                 are not understood are requested from the controller
  WEIR_MODE                      enforce, shadow (count refusals only) or bypass (do
                                 nothing) (default enforce)
  WEIR_CAPTURE                   how requests come here, reported to the controller:
                                 redirect, port, explicit (the user has the app ask) or
                                 none (no port was found); written by the injector
  WEIR_SANDBOX_DIR               directory put before --token-file and --check-socket; to
                                 run without a pod
  WEIR_SANDBOX_IP                address to listen on and to find the app at, instead of
                                 the pod's; to run without a pod
`

const (
	defaultToken = "/var/run/secrets/weir.dev/token"
	defaultApp   = "127.0.0.1"
	defaultCheck = "127.0.0.1:15010"
	defaultRLS   = "127.0.0.1:15011"
	defaultAdmin = ":15020"
	defaultGrace = 30 * time.Second

	exampleSocket = "/var/run/weir.dev/check.sock"
	maxSocketPath = 107 // bytes, set by Linux
)

func printUsage(w io.Writer) error {
	_, err := fmt.Fprintf(w, usage, defaultToken, defaultApp, defaultCheck, defaultRLS, defaultAdmin, defaultGrace, proxy.DropUnderscores)
	return err
}

// errVersion is what loadConfig returns when nothing but the version is asked for.
var errVersion = errors.New("the version is asked for")

// loadConfig reads flags and environment. The error is flag.ErrHelp or errVersion when
// that is asked for, and names each field and its cure otherwise.
func loadConfig(args []string, getenv func(string) string) (config, error) {
	var c config
	var ports []string
	flags := flag.NewFlagSet("sidecar", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&c.fleetAddress, "fleet-address", "", "")
	flags.StringVar(&c.fleetServerName, "fleet-server-name", "", "")
	flags.StringVar(&c.tokenFile, "token-file", defaultToken, "")
	flags.StringVar(&c.appAddress, "app-address", defaultApp, "")
	flags.StringVar(&c.checkAddress, "check-address", defaultCheck, "")
	flags.StringVar(&c.checkSocket, "check-socket", "", "")
	flags.StringVar(&c.rlsAddress, "rls-address", defaultRLS, "")
	flags.StringVar(&c.adminAddress, "admin-address", defaultAdmin, "")
	flags.DurationVar(&c.grace, "shutdown-grace-period", defaultGrace, "")
	flags.DurationVar(&c.linger, "linger", 0, "")
	flags.StringVar((*string)(&c.underscores), "underscores", string(proxy.DropUnderscores), "")
	flags.StringVar(&c.otlpEndpoint, "otlp-endpoint", "", "")
	flags.Func("inbound", "", func(pair string) error {
		ports = append(ports, pair)
		return nil
	})
	flags.Func("probe", "", func(text string) error {
		target, err := probe.Parse(text)
		c.probes = append(c.probes, target)
		return err
	})
	asked := flags.Bool("version", false, "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return config{}, flag.ErrHelp
	case err != nil:
		return config{}, fmt.Errorf("%w: sidecar --help lists the flags", err)
	case flags.NArg() > 0:
		return config{}, fmt.Errorf("argument %q is not a flag: sidecar --help lists the flags", flags.Arg(0))
	case *asked:
		return config{}, errVersion
	}
	c.readEnv(getenv)
	return c, errors.Join(c.readPorts(ports, getenv("WEIR_SANDBOX_IP")), c.validate())
}

func (c *config) readEnv(getenv func(string) string) {
	c.namespace, c.pod, c.podUID = getenv("WEIR_POD_NAMESPACE"), getenv("WEIR_POD_NAME"), getenv("WEIR_POD_UID")
	c.caBundle = getenv("WEIR_CA_BUNDLE")
	c.probeToken = getenv("WEIR_PROBE_TOKEN")
	if dir := getenv("WEIR_SANDBOX_DIR"); dir != "" {
		c.tokenFile = filepath.Join(dir, c.tokenFile)
		if c.checkSocket != "" {
			c.checkSocket = filepath.Join(dir, c.checkSocket)
		}
	}
	c.capture = getenv("WEIR_CAPTURE")
	c.mode = enforce.Mode(getenv("WEIR_MODE"))
	if c.mode == "" {
		c.mode = enforce.Enforce
	}
	c.snapshot = getenv("WEIR_SNAPSHOT")
}

// readPorts reads the --inbound pairs. In a sandbox every listener moves to its
// address, and so does the app.
func (c *config) readPorts(pairs []string, sandboxIP string) error {
	if sandboxIP != "" && net.ParseIP(sandboxIP) == nil {
		return fmt.Errorf("WEIR_SANDBOX_IP is %q: write an IP address", sandboxIP)
	}
	listen := sandboxIP
	if sandboxIP != "" {
		c.appAddress = sandboxIP
	}
	var errs []error
	for _, pair := range pairs {
		from, to, ok := strings.Cut(pair, ":")
		if !ok || !isPort(from) || !isPort(to) {
			errs = append(errs, fmt.Errorf("--inbound is %q: write LISTENPORT:APPPORT, such as 15006:8080", pair))
			continue
		}
		c.inbound = append(c.inbound, inbound{listen: net.JoinHostPort(listen, from), app: net.JoinHostPort(c.appAddress, to)})
	}
	for _, address := range []struct {
		flag     string
		value    *string
		optional bool
	}{{"--check-address", &c.checkAddress, false}, {"--rls-address", &c.rlsAddress, true}, {"--admin-address", &c.adminAddress, false}} {
		if address.optional && *address.value == "" {
			continue
		}
		_, port, err := net.SplitHostPort(*address.value)
		if err != nil || port != "0" && !isPort(port) {
			errs = append(errs, fmt.Errorf("%s is %q: write HOST:PORT, such as %s", address.flag, *address.value, defaultCheck))
		} else if sandboxIP != "" {
			*address.value = net.JoinHostPort(sandboxIP, port)
		}
	}
	return errors.Join(errs...)
}

func isPort(s string) bool {
	port, err := strconv.ParseUint(s, 10, 16)
	return err == nil && port > 0
}

func (c *config) validate() error {
	var errs []error
	need := func(name, value, why string) {
		if value == "" {
			errs = append(errs, fmt.Errorf("%s is not set: %s", name, why))
		}
	}
	need("WEIR_POD_NAMESPACE", c.namespace, "set it to the namespace of the pod")
	if len(c.probes) > 0 {
		need("WEIR_PROBE_TOKEN", c.probeToken, "with --probe, set it to a random text that is fit for a path")
	}
	switch c.mode {
	case enforce.Enforce, enforce.Shadow, enforce.Bypass:
	default:
		errs = append(errs, fmt.Errorf("WEIR_MODE is %q: use enforce, shadow or bypass", c.mode))
	}
	if c.checkSocket != "" && (!filepath.IsAbs(c.checkSocket) || len(c.checkSocket) > maxSocketPath) {
		errs = append(errs, fmt.Errorf("--check-socket is %q: write an absolute path of at most %d bytes, such as %s", c.checkSocket, maxSocketPath, exampleSocket))
	}
	if c.grace < 0 {
		errs = append(errs, fmt.Errorf("--shutdown-grace-period is %s: use 0s or more", c.grace))
	}
	if host, port, err := net.SplitHostPort(c.otlpEndpoint); c.otlpEndpoint != "" && (err != nil || host == "" || !isPort(port)) {
		errs = append(errs, fmt.Errorf("--otlp-endpoint is %q: write HOST:PORT without a scheme, such as collector.monitoring:4317", c.otlpEndpoint))
	}
	if !c.underscores.Valid() {
		errs = append(errs, fmt.Errorf("--underscores is %q: use drop, pass or refuse", c.underscores))
	}
	if c.linger < 0 {
		errs = append(errs, fmt.Errorf("--linger is %s: use 0s or more", c.linger))
	}
	if c.appAddress == "" {
		errs = append(errs, errors.New("--app-address is empty: write the address of the pod"))
	}
	if c.fleetAddress == "" {
		return errors.Join(errs...)
	}
	host, port, err := net.SplitHostPort(c.fleetAddress)
	if err != nil || host == "" || !isPort(port) {
		errs = append(errs, fmt.Errorf("--fleet-address is %q: write HOST:PORT", c.fleetAddress))
	}
	if c.fleetServerName == "" {
		c.fleetServerName = host
	}
	need("WEIR_POD_NAME", c.pod, "with --fleet-address, set it to the name of the pod")
	need("WEIR_POD_UID", c.podUID, "with --fleet-address, set it to the UID of the pod")
	need("WEIR_CA_BUNDLE", c.caBundle, "with --fleet-address, set it to the certificates that sign the controller's, as PEM")
	return errors.Join(errs...)
}

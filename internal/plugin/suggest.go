package plugin

import (
	"fmt"
	"io"
	"net/netip"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/plugin/replay"
)

// A proposal is what a policy is to be made of.
type proposal struct {
	name, selector, by   string
	window               time.Duration
	percentile, headroom int64
}

func newSuggest() *cobra.Command {
	var p proposal
	cmd := &cobra.Command{
		Use:   "suggest --log LOG --selector LABEL=VALUE [--by PART] [--window DURATION]",
		Short: "Propose a limit from the requests of an access log, as a policy",
		Long: "Count the requests of an access log in windows, overall or of each value of a key, and print a RateLimitPolicy whose limit " +
			"is a percentile of these counts and some headroom. The policy is in mode Shadow, which counts refusals and refuses nothing. " +
			"It uses no cluster.",
		Example: "  kubectl weir suggest --log access.log --selector app=checkout\n" +
			"  kubectl weir suggest --log access.log --selector app=checkout --by client --window 10s > policy.yaml\n" +
			"  kubectl weir suggest --log envoy.log --format envoy-json --selector app=checkout --by header:x-tenant",
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&p.selector, "selector", "", "labels of the pods that the policy is for, such as app=checkout")
	flags.StringVar(&p.name, "name", "suggested", "name of the policy")
	flags.StringVar(&p.by, "by", "overall", "counters of the limit: overall, or one for each client, path, method, host or header:NAME")
	flags.DurationVar(&p.window, "window", time.Minute, "length of the window, from 100ms to 744h")
	flags.Int64Var(&p.percentile, "percentile", 99, "percentile of the windows that the limit is to admit, 1 to 100")
	flags.Int64Var(&p.headroom, "headroom", 50, "percent that is added to it")
	log := newLogFile(cmd)
	cobra.CheckErr(cmd.MarkFlagRequired("selector"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		key, part, err := p.validate()
		if err != nil {
			return err
		}
		demand := replay.NewDemand(p.window, key)
		lines, err := log.read(cmd, demand.Add)
		if err != nil {
			return err
		}
		measured := demand.Measure()
		if measured.Windows == 0 {
			return fmt.Errorf("--by is %s, and no request of the log has that: choose another", p.by)
		}
		return p.print(cmd.OutOrStdout(), part, lines, &measured)
	}
	return cmd
}

// Bounds of the window of a rate.
const (
	leastWindow = 100 * time.Millisecond
	mostWindow  = 744 * time.Hour
)

// validate returns the part of a key that the flags name, as a request of a log has it and as the
// API has it; nil for none.
func (p *proposal) validate() (key func(*replay.Entry) string, part map[string]any, err error) {
	switch {
	case p.window < leastWindow || p.window > mostWindow || p.window%time.Millisecond != 0:
		return nil, nil, fmt.Errorf("--window is %s: use whole milliseconds from 100ms to 744h", p.window)
	case p.percentile < 1 || p.percentile > 100:
		return nil, nil, fmt.Errorf("--percentile is %d: use 1 to 100", p.percentile)
	case len(validation.IsDNS1123Subdomain(p.name)) > 0:
		return nil, nil, fmt.Errorf("--name is %q: use lower-case letters, digits, dots and hyphens", p.name)
	case p.headroom < 0 || p.headroom > 10_000:
		return nil, nil, fmt.Errorf("--headroom is %d: use 0 to 10000", p.headroom)
	}
	if _, err := labels.ConvertSelectorToLabelsMap(p.selector); err != nil || p.selector == "" {
		return nil, nil, fmt.Errorf("--selector is %q: use LABEL=VALUE, several separated by commas", p.selector)
	}
	of := func(kind string) map[string]any { return map[string]any{"type": kind} }
	name, isHeader := strings.CutPrefix(p.by, "header:")
	switch {
	case p.by == "overall":
		return nil, nil, nil
	case p.by == "client":
		return clientOf, of("ClientIP"), nil
	case p.by == "path":
		return pathOf, of("Path"), nil
	case p.by == "method":
		return func(e *replay.Entry) string { return e.Method }, of("Method"), nil
	case p.by == "host":
		return func(e *replay.Entry) string { return e.Host }, of("Host"), nil
	case isHeader && name != "":
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		part := of("Header")
		part["header"] = map[string]any{"name": strings.ToLower(name)}
		return func(e *replay.Entry) string { return e.Header.Get(canonical) }, part, nil
	default:
		return nil, nil, fmt.Errorf("--by is %q: use overall, client, path, method, host or header:NAME", p.by)
	}
}

// clientOf returns the client as limits count it: IPv6 addresses by their /64.
func clientOf(e *replay.Entry) string {
	addr, err := netip.ParseAddr(e.Client)
	if err != nil {
		return ""
	}
	if addr = addr.Unmap(); addr.Is4() {
		return addr.String()
	}
	network, err := addr.WithZone("").Prefix(64)
	if err != nil {
		return ""
	}
	return network.String()
}

func pathOf(e *replay.Entry) string {
	target, err := url.ParseRequestURI(e.Target)
	if err != nil {
		return ""
	}
	return target.Path
}

// limit returns the percentile and the headroom, at least 1.
func (p *proposal) limit(m *replay.Measure) int64 {
	return max(1, (m.Percentile(p.percentile)*(100+p.headroom)+99)/100)
}

// print writes the policy, with the figures as comments.
func (p *proposal) print(out io.Writer, part map[string]any, lines replay.Lines, m *replay.Measure) error {
	selected, err := labels.ConvertSelectorToLabelsMap(p.selector)
	if err != nil {
		return err
	}
	limit := p.limit(m)
	entry := map[string]any{"name": limitName(p.by), "rates": []any{map[string]any{"limit": limit, "window": duration(p.window)}}}
	if part != nil {
		entry["key"] = map[string]any{"parts": []any{part}}
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "weir.dev/v1alpha1", "kind": "RateLimitPolicy",
		"metadata": map[string]any{"name": p.name},
		"spec": map[string]any{
			"mode": "Shadow", "podSelector": map[string]any{"matchLabels": selected}, "limits": []any{entry},
		},
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "# From %d requests between %s and %s.\n", lines.Requests, lines.From.UTC().Format(time.RFC3339), lines.To.UTC().Format(time.RFC3339))
	fmt.Fprintf(out, "# Requests in a window of %s, by %s: 50th percentile %d, 99th %d, most %d, in %d windows.\n", duration(p.window), p.by, m.P50, m.P99, m.Max, m.Windows)
	if m.Missing > 0 {
		fmt.Fprintf(out, "# %d requests without the key are left out. Together they would share one counter.\n", m.Missing)
	}
	fmt.Fprintf(out, "# The limit is the %dth percentile and %d %%. It would have refused about %d requests.\n", p.percentile, p.headroom, m.Beyond(limit))
	fmt.Fprintf(out, "# In mode Shadow it refuses nothing: set mode to Enforce when status shows the refusals that you mean.\n%s", text)
	return nil
}

// limitName returns a name for a limit that has a counter for each of these.
func limitName(by string) string {
	if by == "overall" {
		return by
	}
	return "per-" + strings.NewReplacer(":", "-", "_", "-").Replace(strings.ToLower(by))
}

// duration writes a duration as the API has it.
func duration(d time.Duration) string {
	if d%time.Second != 0 {
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	text := d.String() // such as 1h0m0s
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

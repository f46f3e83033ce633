package plugin

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/internal/plugin/replay"
)

// A logFile is the access log that the flags name.
type logFile struct {
	path, format string
}

// newLogFile adds the flags of an access log.
func newLogFile(cmd *cobra.Command) *logFile {
	f := &logFile{}
	cmd.Flags().StringVar(&f.path, "log", "", "access log; - reads the standard input")
	cmd.Flags().StringVar(&f.format, "format", string(replay.Combined), "format of the log: "+strings.Join(replay.Formats, ", "))
	cobra.CheckErr(cmd.MarkFlagRequired("log"))
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(replay.Formats, cobra.ShellCompDirectiveNoFileComp)))
	return f
}

// read calls do for each request, and warns of lines that were left out.
func (f *logFile) read(cmd *cobra.Command, do func(*replay.Entry) error) (replay.Lines, error) {
	if !slices.Contains(replay.Formats, f.format) {
		return replay.Lines{}, fmt.Errorf("--format is %q: use one of %s", f.format, strings.Join(replay.Formats, ", "))
	}
	log := cmd.InOrStdin()
	if f.path != standardInput {
		file, err := os.Open(f.path)
		if err != nil {
			return replay.Lines{}, fmt.Errorf("--log: %w; name another file, or - for the standard input", err)
		}
		defer file.Close()
		log = file
	}
	lines, err := replay.Read(log, replay.Format(f.format), do)
	if err != nil {
		return lines, fmt.Errorf("--log: %s: %w", f.path, err)
	}
	if lines.Unread > 0 {
		cmd.PrintErrf("Warning: %d lines are not requests in the format %s and are left out, the first because of %v\n", lines.Unread, f.format, lines.Unreadable())
	}
	return lines, nil
}

func newSimulate() *cobra.Command {
	var file string
	var top int
	cmd := &cobra.Command{
		Use:   "simulate -f FILE --log LOG [--format FORMAT]",
		Short: "Show what the policies of a file would have done to the requests of an access log",
		Long: "Decide the requests of an access log by the RateLimitPolicies of a file, in the times of the log, and show how many each " +
			"limit would have admitted and refused. It uses no cluster.\n\n" +
			"One process decides, by the algorithms that all pods together promise. Real pods admit no more than that. " +
			"They may refuse more, by the under-utilization U, while others hold leased units, and for the lifetime of leases that " +
			"limits without windows set aside. Pools are left out. The client of a request is the one that the log names.",
		Example: "  kubectl weir simulate -f policy.yaml --log access.log\n" +
			"  zcat access.log.1.gz | kubectl weir simulate -f policy.yaml --log -\n" +
			"  kubectl logs -n gateways deploy/envoy | kubectl weir simulate -f policy.yaml --log - --format envoy-json",
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file with the objects; - reads the standard input")
	cmd.Flags().IntVar(&top, "top", 3, "values with the most refusals that are listed for each limit")
	cobra.CheckErr(cmd.MarkFlagRequired("filename"))
	log, as := newLogFile(cmd), newFormat(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if top < 0 {
			return fmt.Errorf("--top is %d: use 0 or more", top)
		}
		if file == standardInput && log.path == standardInput {
			return errors.New("-f and --log both read the standard input: name a file for one of them")
		}
		simulation, err := simulationOf(cmd, file)
		if err != nil {
			return err
		}
		lines, err := log.read(cmd, simulation.Add)
		if err != nil {
			return err
		}
		found := simulated{Log: lines, Late: simulation.Late(), Items: simulation.Results(top)}
		for _, doubt := range found.doubts() {
			cmd.PrintErrln("Warning: " + doubt)
		}
		if err := as.print(cmd.OutOrStdout(), found, simulateHeader, found.cells()); err != nil || as.String() != "table" {
			return err
		}
		cmd.PrintErrf("%d requests from %s to %s. Pods admit no more; they may refuse more while others hold leased units (U).\n",
			lines.Requests, lines.From.UTC().Format(time.RFC3339), lines.To.UTC().Format(time.RFC3339))
		return nil
	}
	return cmd
}

// simulationOf returns a simulation of the policies of a file, and warns of what they may not do.
func simulationOf(cmd *cobra.Command, file string) (*replay.Simulation, error) {
	m, err := readManifest(cmd.Context(), file, cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	set, warnings, err := m.compile()
	for _, warning := range warnings {
		cmd.PrintErrln("Warning: " + warning)
	}
	if err != nil {
		return nil, err
	}
	if len(set.Limits) == 0 {
		return nil, fmt.Errorf("%s has no RateLimitPolicy: name another file with -f", file)
	}
	return replay.NewSimulation(set.Snapshot)
}

// simulated is what is printed as JSON and YAML.
type simulated struct {
	Log   replay.Lines    `json:"log"`
	Late  int64           `json:"late"` // requests older than one before them
	Items []replay.Result `json:"items"`
}

// doubts returns what a reader should know of the figures.
func (s *simulated) doubts() []string {
	var doubts []string
	if s.Late > 0 {
		doubts = append(doubts, fmt.Sprintf("%d requests are older than one before them in the log, and count at the time of that", s.Late))
	}
	for _, r := range s.Items {
		switch {
		case r.Matched == 0:
			doubts = append(doubts, fmt.Sprintf("limit %s/%s matches no request of the log: see its match", r.Policy, r.Limit))
		case r.Missing > 0:
			doubts = append(doubts, fmt.Sprintf("limit %s/%s: %d of %d requests lack its key, if only because the log does not have it", r.Policy, r.Limit, r.Missing, r.Matched))
		}
	}
	return doubts
}

var simulateHeader = []string{"POLICY", "LIMIT", "MATCHED", "ADMITTED", "REFUSED", "REFUSED%", "WORST MINUTE", "TOP REFUSED"}

func (s *simulated) cells() [][]string {
	cells := make([][]string, 0, len(s.Items))
	for _, r := range s.Items {
		worst, limit := "", r.Limit
		if r.WorstMinute != nil {
			worst = fmt.Sprintf("%s (%d)", r.WorstMinute.Start.Format("2006-01-02T15:04Z"), r.WorstMinute.Refused)
		}
		if r.Shadow {
			limit += " (Shadow)"
		}
		var top []string
		for _, t := range r.Top {
			top = append(top, fmt.Sprintf("%s (%d)", oneLine(&t.Value), t.Refused))
		}
		cells = append(cells, []string{
			r.Policy, limit, strconv.FormatInt(r.Matched, 10), strconv.FormatInt(r.Admitted, 10), strconv.FormatInt(r.Refused, 10),
			strconv.FormatFloat(r.Percent, 'f', 1, 64), worst, strings.Join(top, ", "),
		})
	}
	return cells
}

package plugin

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func newTest() *cobra.Command {
	var file, requestsFile, client string
	var lines, headers []string
	cmd := &cobra.Command{
		Use:   "test -f FILE [--request 'METHOD TARGET']... [-H 'NAME: VALUE']... [--requests FILE]",
		Short: "Validate a file, and show which limits of its policies count which requests",
		Long: "Validate the RateLimitPolicies, ConcurrencyPools and FederatedBudgets of a file as the API server and the controller do, " +
			"and show which limits of the policies count the requests, and by which values of their keys.\n\n" +
			"It uses no cluster. It fails where an object is not valid, or an expectation of --requests does not hold.",
		Example: "  kubectl weir test -f policy.yaml --request 'POST /v1/orders' -H 'x-tenant: acme'\n" +
			"  kubectl weir test -f policy.yaml --requests requests.yaml",
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVarP(&file, "filename", "f", "", "file with the objects; - reads the standard input")
	flags.StringArrayVar(&lines, "request", nil, "method and target of a request, such as 'GET /x?y=1'; may be repeated")
	flags.StringArrayVarP(&headers, "header", "H", nil, "header of each --request, such as 'x-tenant: acme'; may be repeated")
	flags.StringVar(&requestsFile, "requests", "", "file with a YAML list of {request, headers, expect: {limits}}")
	flags.StringVar(&client, "client", "192.0.2.1", "IP address that connections come from")
	cobra.CheckErr(cmd.MarkFlagRequired("filename"))
	as := newFormat(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		tries, err := readTries(lines, headers, requestsFile)
		if err != nil {
			return err
		}
		if net.ParseIP(client) == nil {
			return fmt.Errorf("--client is %q: use an IP address", client)
		}
		m, err := readManifest(cmd.Context(), file, cmd.InOrStdin())
		if err != nil {
			return err
		}
		set, warnings, err := m.compile()
		for _, warning := range warnings {
			cmd.PrintErrln("Warning: " + warning)
		}
		if err != nil {
			return err
		}
		if len(tries) == 0 && as.String() == "table" {
			if file == standardInput {
				file = "The standard input"
			}
			cmd.PrintErrf("%s is valid; --request and --requests show which limits count a request.\n", file)
			return nil
		}
		rows, err := judgeAll(cmd.Context(), set, tries, client)
		if err != nil {
			return err
		}
		if err := as.print(cmd.OutOrStdout(), testList{Items: rows}, testHeader, testCells(rows)); err != nil {
			return err
		}
		return unmet(tries, rows)
	}
	return cmd
}

// A testList is what is printed as JSON and YAML.
type testList struct {
	Items []testRow `json:"items"`
}

// A testRow is a request and one limit.
type testRow struct {
	Request string  `json:"request"`
	Policy  string  `json:"policy"`
	Limit   string  `json:"limit"`
	Result  string  `json:"result"`          // counted, skipped, rejected or unmatched
	Value   *string `json:"value,omitempty"` // of the key, of a request that is counted
	Hash    string  `json:"hash,omitempty"`  // of the value, as in status.hottestKeys
	Cost    *int64  `json:"cost,omitempty"`  // of a request that is counted

	try int // that it is of
}

var testHeader = []string{"REQUEST", "POLICY", "LIMIT", "RESULT", "VALUE", "HASH", "COST"}

func testCells(rows []testRow) [][]string {
	cells := make([][]string, 0, len(rows))
	for _, r := range rows {
		cells = append(cells, []string{r.Request, r.Policy, r.Limit, r.Result, oneLine(r.Value), r.Hash, figure(r.Cost)})
	}
	return cells
}

// oneLine returns a value of a key as a table shows it, whatever a request has.
func oneLine(value *string) string {
	if value == nil {
		return ""
	}
	return strings.Trim(strconv.Quote(*value), `"`)
}

// unmet returns an error that names each request whose expectation does not hold.
func unmet(tries []try, rows []testRow) error {
	var errs []error
	for i, t := range tries {
		if t.Expect == nil {
			continue
		}
		counted := []string{}
		for _, row := range rows {
			if row.try == i && row.Result == "counted" {
				counted = append(counted, row.Limit)
			}
		}
		want := slices.Sorted(slices.Values(t.Expect.Limits))
		slices.Sort(counted)
		if !slices.Equal(counted, want) {
			errs = append(errs, fmt.Errorf("request %d, %q: counted by the limits %q, want %q", i+1, t.Request, counted, want))
		}
	}
	return errors.Join(errs...)
}

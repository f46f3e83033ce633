package plugin

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// A format is how a command prints: table, json or yaml.
type format string

// newFormat adds the flag -o.
func newFormat(cmd *cobra.Command) *format {
	f := format("table")
	cmd.Flags().VarP(&f, "output", "o", "table, json or yaml")
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)))
	return &f
}

// String returns the name of the format.
func (f *format) String() string { return string(*f) }

// Type is the name of the flag's values in the help.
func (f *format) Type() string { return "format" }

// Set takes the name of a format.
func (f *format) Set(name string) error {
	switch name {
	case "table", "json", "yaml":
		*f = format(name)
		return nil
	default:
		return fmt.Errorf("use table, json or yaml")
	}
}

// print writes v as JSON or YAML, or else the rows under the header. Empty cells are
// written as kubectl does.
func (f *format) print(out io.Writer, v any, header []string, rows [][]string) error {
	switch *f {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "    ")
		return encoder.Encode(v)
	case "yaml":
		text, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	default:
		return printTable(out, header, rows)
	}
}

func printTable(out io.Writer, header []string, rows [][]string) error {
	table := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, strings.Join(header, "\t"))
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = cell; cell == "" {
				cells[i] = "-"
			}
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

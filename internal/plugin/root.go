package plugin

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/internal/version"
)

// Execute runs the command that the arguments name.
func Execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(ctx)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-weir",
		Short:         "Ask a cluster about its rate limits",
		Version:       version.String(),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl weir"},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newStatus(), newExplain(), newWhy(), newTop(), newDashboard(), newTest(), newSimulate(), newSuggest(), newBudget(), newBrake(), newRelease(), newReset())
	teach(root)
	return root
}

// teach has the commands below one answer wrong arguments with how they are used.
func teach(parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		teach(cmd)
		check := cmd.Args
		if check == nil {
			continue
		}
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return fmt.Errorf("%w; use: %s", err, cmd.UseLine())
			}
			return nil
		}
	}
}

package plugin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

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
		Args:          cobra.ArbitraryArgs,

		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return fmt.Errorf("%s has no command %q: %s", cmd.CommandPath(), args[0], instead(cmd, args[0]))
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath())
	})
	root.AddCommand(newStatus(), newExplain(), newWhy(), newTop(), newDashboard(), newTest(), newSimulate(), newSuggest(), newBudget(), newBrake(), newRelease(), newReset())
	teach(root)
	return root
}

// instead names the commands like a wrong one, and where all are listed.
func instead(cmd *cobra.Command, wrong string) string {
	all := cmd.CommandPath() + " --help"
	if like := cmd.SuggestionsFor(wrong); len(like) > 0 {
		return "use " + strings.Join(like, " or ") + ", or another one of " + all
	}
	return "use one of " + all
}

// teach has the commands below one answer wrong arguments, and the lack of a required flag, with how
// they are used.
func teach(parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		teach(cmd)
		check := cmd.Args
		if check == nil {
			continue
		}
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(check(cmd, args), cmd.ValidateRequiredFlags()); err != nil {
				return fmt.Errorf("%w; use: %s", err, cmd.UseLine())
			}
			return nil
		}
	}
}

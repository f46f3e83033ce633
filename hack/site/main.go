// Command site makes the site of the documentation from the pages of the repository. It writes
// them for the generator, which make site runs, and checks the links and the search of what the
// generator wrote.
//
//	site stage -out DIR [-ref REF]
//	site check -dir DIR [-base PATH]
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no command: use stage or check")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	switch args[0] {
	case "stage":
		out := flags.String("out", "", "directory that the pages are written to")
		ref := flags.String("ref", "main", "version of the sources that pages link to")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return stage(".", *out, *ref)
	case "check":
		dir := flags.String("dir", "", "directory that the generator wrote")
		base := flags.String("base", "/", "path that the site is served below")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		problems, err := checkSite(os.DirFS(*dir), *base)
		for _, problem := range problems {
			fmt.Fprintln(os.Stderr, problem)
		}
		if err == nil && len(problems) > 0 {
			err = fmt.Errorf("%d faults of links and of the search", len(problems))
		}
		return err
	default:
		return fmt.Errorf("command %q: use stage or check", args[0])
	}
}

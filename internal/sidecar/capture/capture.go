package capture

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A Redirect leads the connections to one port of the pod to another.
type Redirect struct{ App, Listen uint16 }

// String returns the pair as the flag spells it.
func (r Redirect) String() string { return fmt.Sprintf("%d:%d", r.App, r.Listen) }

const usage = `Redirects connections from the app's ports to the sidecar's, for all that the pod
receives from now on. It runs as root with the capability NET_ADMIN, once, and again
without harm.

Usage:
  sidecar capture --redirect APPPORT:LISTENPORT [--redirect ...]
`

// Run does what the arguments say. With --help it prints to out and does nothing.
// An error names the argument or the condition that is wrong, and the cure.
func Run(args []string, out io.Writer) error {
	redirects, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		_, err = io.WriteString(out, usage)
		return err
	}
	if err != nil {
		return err
	}
	if err := Apply(redirects); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "connections to these ports go to the sidecar, APPPORT:LISTENPORT:", redirects)
	return err
}

// parse returns the redirects that are asked for, at least one.
func parse(args []string) ([]Redirect, error) {
	var redirects []Redirect
	flags := flag.NewFlagSet("capture", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("redirect", "", func(pair string) error {
		r, err := parsePair(pair)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(redirects, func(o Redirect) bool { return o.App == r.App }) {
			return fmt.Errorf("port %d is redirected already: list it once", r.App)
		}
		redirects = append(redirects, r)
		return nil
	})
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: sidecar capture --help lists the arguments", err)
	case flags.NArg() > 0:
		return nil, fmt.Errorf("argument %q is not a flag: write --redirect APPPORT:LISTENPORT", flags.Arg(0))
	case len(redirects) == 0:
		return nil, errors.New("nothing to capture: write --redirect APPPORT:LISTENPORT")
	}
	return redirects, nil
}

func parsePair(pair string) (Redirect, error) {
	from, to, _ := strings.Cut(pair, ":")
	app, appErr := strconv.ParseUint(from, 10, 16)
	listen, listenErr := strconv.ParseUint(to, 10, 16)
	switch {
	case appErr != nil || listenErr != nil || app == 0 || listen == 0:
		return Redirect{}, errors.New("write APPPORT:LISTENPORT, such as 8080:15006")
	case app == listen:
		return Redirect{}, errors.New("a port cannot be redirected to itself: write another LISTENPORT")
	}
	return Redirect{App: uint16(app), Listen: uint16(listen)}, nil
}

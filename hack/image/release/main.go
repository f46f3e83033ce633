// Command release writes all that a release publishes, from the images that `make images`
// built, and pushes the images and the chart when asked to.
//
//	go -C hack/image run ./release -version v0.1.0 -registry registry.example.com/weir [-push]
//
// Without -push nothing leaves the machine. A version such as v0.2.0-rc.1 has the notes of 0.2.0,
// or what the changelog has under Unreleased before there are any.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/name"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// programs are those that have an image, by its name.
var programs = []string{"weir-controller", "weir-sidecar"}

// A release is what one version is published as.
type release struct {
	version  string // with the v
	registry string // and the path in it, without a slash at the end
	source   string // the checkout
	images   string // where they were built
	programs string // where those of the plugin were
	out      string
	push     bool
}

func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	r, err := parse(args, errOut)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	built, err := r.built()
	if err != nil {
		return err
	}
	for _, write := range []func(context.Context, []build) error{r.notes, r.bills, r.plugins, r.krew, r.manifest, r.chart, r.checksums} {
		if err := write(ctx, built); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%s has the files of release %s\n", r.out, r.version)
	if !r.push {
		fmt.Fprintln(out, "nothing was pushed: add -push")
		return nil
	}
	return r.publish(ctx, built, out)
}

// versions are those of semantic versioning with a v in front, without build metadata: a tag of
// an image has no plus sign.
var versions = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

func parse(args []string, errOut io.Writer) (release, error) {
	var r release
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.StringVar(&r.version, "version", "", "`version` such as v0.1.0 (required)")
	flags.StringVar(&r.registry, "registry", "", "`registry` and path that images and chart are published under, such as registry.example.com/weir (required)")
	flags.StringVar(&r.source, "source", "../..", "`directory` of the checkout")
	flags.StringVar(&r.images, "images", "../../dist/images", "`directory` of the images of that version")
	flags.StringVar(&r.programs, "plugins", "../../dist/plugins", "`directory` of the programs of the plugin of that version")
	flags.StringVar(&r.out, "out", "../../dist/release", "`directory` to write to, in the place of what it has")
	flags.BoolVar(&r.push, "push", false, "push the images and the chart")
	if err := flags.Parse(args); err != nil {
		return release{}, err
	}
	var errs []error
	if !versions.MatchString(r.version) {
		errs = append(errs, fmt.Errorf("-version is %q: set it to one like v0.1.0 or v0.1.0-rc.1", r.version))
	}
	if _, err := name.NewRepository(r.registry + "/" + programs[0]); err != nil || r.registry == "" || strings.Contains(r.registry, "//") {
		errs = append(errs, fmt.Errorf("-registry is %q: name the registry and a path in it, such as registry.example.com/weir", r.registry))
	}
	if flags.NArg() > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q: there are flags only", flags.Arg(0)))
	}
	for _, path := range []*string{&r.source, &r.images, &r.programs, &r.out} { // programs that are called have directories of their own
		absolute, err := filepath.Abs(*path)
		errs = append(errs, err)
		*path = absolute
	}
	return r, errors.Join(errs...)
}

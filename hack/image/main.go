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
	"runtime"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/name"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// order is the command line.
type order struct {
	program
	name          string
	tag           name.Tag // of name and version
	out           string
	architectures []string
	limit         int64 // bytes that are pulled, per architecture
}

func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	if len(args) > 0 && args[0] == "licences" {
		return licences(ctx, args[1:], errOut)
	}
	o, err := parse(args, errOut)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	images, err := o.pack(ctx, scratch)
	if err != nil {
		return err
	}
	digest, err := o.write(images)
	if err != nil {
		return err
	}
	for _, i := range images {
		fmt.Fprintf(out, "%s:%s linux/%s: %s to pull, %s on disk\n", o.name, o.version, i.architecture, mebibytes(i.pulled), mebibytes(i.unpacked))
	}
	fmt.Fprintf(out, "%s:%s %s\n", o.name, o.version, digest)
	return nil
}

func parse(args []string, errOut io.Writer) (order, error) {
	var o order
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.StringVar(&o.name, "name", "", "`name` of the image, without a registry (required)")
	flags.StringVar(&o.pkg, "package", "", "main `package` in -source, for example ./cmd/controller (required)")
	flags.StringVar(&o.version, "version", "dev", "`version`: what the program says of itself, and the tag")
	flags.StringVar(&o.source, "source", "../..", "`directory` of the module")
	flags.StringVar(&o.tags, "tags", "", "build `tags`, comma-separated")
	flags.StringVar(&o.out, "out", "../../dist/images", "`directory` to write to")
	architectures := flags.String("architectures", "amd64,arm64", "`list` of what to build for, comma-separated")
	limit := flags.Int64("limit", 25, "`MiB` that an image may have at most, as it is pulled")
	if err := flags.Parse(args); err != nil {
		return order{}, err
	}
	o.architectures, o.limit = strings.Split(*architectures, ","), *limit<<20

	var errs []error
	if o.name == "" {
		errs = append(errs, errors.New("-name is empty: name the image, for example weir-controller"))
	}
	if o.pkg == "" {
		errs = append(errs, errors.New("-package is empty: name the main package, for example ./cmd/controller"))
	}
	if tag, err := name.NewTag(o.name + ":" + o.version); err == nil {
		o.tag = tag
	} else if o.name != "" {
		errs = append(errs, fmt.Errorf("-name %q and -version %q make no tag: %w", o.name, o.version, err))
	}
	if flags.NArg() > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q: there are flags only", flags.Arg(0)))
	}
	return o, errors.Join(errs...)
}

// pack builds the program for each architecture and makes an image of each.
func (o *order) pack(ctx context.Context, scratch string) ([]*image, error) {
	var images []*image
	for _, architecture := range o.architectures {
		binary := filepath.Join(scratch, architecture)
		if err := o.build(ctx, architecture, binary); err != nil {
			return nil, err
		}
		modules, err := o.contents(ctx, architecture, binary)
		if err != nil {
			return nil, err
		}
		i, err := o.image(architecture, binary, modules)
		if err != nil {
			return nil, fmt.Errorf("linux/%s: %w", architecture, err)
		}
		if i.pulled > o.limit {
			return nil, fmt.Errorf("linux/%s: the image has %s, the limit is %s: see what the program links", architecture, mebibytes(i.pulled), mebibytes(o.limit))
		}
		images = append(images, i)
	}
	return images, nil
}

// contents returns the modules that an image has parts of, with their licences.
func (o *order) contents(ctx context.Context, architecture, binary string) ([]*module, error) {
	modules, err := o.modules(ctx, architecture)
	if err != nil {
		return nil, err
	}
	if err := compare(modules, binary); err != nil {
		return nil, err
	}
	for _, m := range modules {
		if err := m.license(); err != nil {
			return nil, err
		}
	}
	roots, err := authoritiesModule(ctx, architecture)
	return append(modules, roots), err
}

// host returns the image that runs on this machine, nil when there is none.
func host(images []*image) *image {
	for _, i := range images {
		if i.architecture == runtime.GOARCH {
			return i
		}
	}
	return nil
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

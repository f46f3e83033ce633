package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/weir-dev/weir/hack/kind/cluster"
	"github.com/weir-dev/weir/hack/kind/machine"
)

const usage = "usage: kind up|down|load|kubeconfig|check|image [-name weir] [-workers 2] [-pods PREFIX] [-kubeconfig FILE] [ARCHIVE ...]"

type options struct {
	command  string
	config   cluster.Config
	archives []string // of load
}

func parse(args []string) (options, error) {
	o := options{config: cluster.Config{Progress: os.Stderr}}
	if len(args) == 0 || !slices.Contains([]string{"up", "down", "load", "kubeconfig", "check", "image"}, args[0]) {
		return o, errors.New(usage)
	}
	o.command = args[0]
	flags := flag.NewFlagSet(o.command, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says it all
	flags.StringVar(&o.config.Name, "name", "weir", "the cluster")
	flags.IntVar(&o.config.Workers, "workers", 2, "nodes beside the control plane's")
	flags.StringVar(&o.config.Kubeconfig, "kubeconfig", "", "file for the credentials; default: one named after the cluster in the cache directory")
	flags.Func("pods", "range of the pods' addresses; default: a free one", func(value string) (err error) {
		o.config.Pods, err = netip.ParsePrefix(value)
		return err
	})
	if err := flags.Parse(args[1:]); err != nil {
		return o, fmt.Errorf("%w; %s", err, usage)
	}
	if o.command == "load" {
		o.archives = flags.Args()
	} else if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected %q; %s", flags.Arg(0), usage)
	}
	if o.config.Kubeconfig == "" {
		dir, err := machine.Cache("clusters")
		if err != nil {
			return o, err
		}
		o.config.Kubeconfig = filepath.Join(dir, o.config.Name+".kubeconfig")
	}
	return o, nil
}

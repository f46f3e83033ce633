package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/weir-dev/weir/hack/kind/cluster"
	"github.com/weir-dev/weir/hack/kind/engine"
	"github.com/weir-dev/weir/hack/kind/nodeimage"
	"github.com/weir-dev/weir/hack/kind/progress"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kind:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	switch o.command {
	case "up":
		return up(ctx, o)
	case "down":
		return cluster.Delete(ctx, o.config.Name, o.config.Kubeconfig, os.Stderr)
	case "load":
		return cluster.Load(ctx, o.config.Name, os.Stderr, o.archives...)
	case "kubeconfig":
		fmt.Println(o.config.Kubeconfig)
		return nil
	case "check":
		return cluster.Check(ctx)
	default:
		return image(ctx)
	}
}

func up(ctx context.Context, o options) error {
	c, err := cluster.Create(ctx, o.config)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "kind: cluster %s is ready: %v\n", o.config.Name, c.Nodes())
	fmt.Printf("export KUBECONFIG=%s\n", o.config.Kubeconfig)
	return nil
}

func image(ctx context.Context) error {
	log := progress.Log{W: os.Stderr}
	if err := engine.Ensure(ctx, log); err != nil {
		return err
	}
	name, err := nodeimage.Ensure(ctx, log)
	if err != nil {
		return err
	}
	fmt.Println(name)
	return nil
}

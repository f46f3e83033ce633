package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/weir-dev/weir/hack/kind/machine"
	"github.com/weir-dev/weir/hack/kind/progress"
)

// patience is how long a starting engine may take to answer.
const patience = time.Minute

// Ensure returns when an engine answers, and starts one if none does. The error
// is a *machine.UnavailableError when this machine can run none.
func Ensure(ctx context.Context, log progress.Log) error {
	if machine.EngineAnswers(ctx) {
		return nil
	}
	if err := machine.Check(ctx); err != nil {
		return err
	}
	lock, err := machine.Lock("engine", func() { log.Say("waiting for another process that starts the engine") })
	if err != nil {
		return err
	}
	defer lock.Close()
	if machine.EngineAnswers(ctx) {
		return nil // the other process has started it
	}
	if err := machine.Install(ctx, "dockerd", "docker.io"); err != nil {
		return err
	}
	// From Debian 13 on the command is a package of its own.
	if err := machine.Install(ctx, "docker", "docker-cli"); err != nil {
		return err
	}
	return log.Do("starting a Docker engine", "about 5 seconds", func() error { return start(ctx) })
}

func start(ctx context.Context) error {
	dir, err := machine.Cache("engine")
	if err != nil {
		return err
	}
	raiseLimits()
	args := []string{"--data-root", filepath.Join(dir, "data")}
	bounded, err := boundedRuntime(ctx, dir)
	if err != nil {
		return err
	}
	if bounded != "" {
		args = append(args, "--add-runtime", "bounded="+bounded, "--default-runtime", "bounded")
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the engine's log: %w", err)
	}
	defer log.Close()
	daemon := exec.CommandContext(context.WithoutCancel(ctx), "dockerd", args...) // it outlives this program
	daemon.Stdout, daemon.Stderr = log, log
	daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := daemon.Start(); err != nil {
		return fmt.Errorf("start dockerd: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	return await(ctx, ended, log.Name())
}

// await returns when the engine answers, or with the end of its log when it
// gave up or takes too long.
func await(ctx context.Context, ended <-chan error, log string) error {
	deadline, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("dockerd ended (%w); the end of %s: %s", err, log, tail(log))
		case <-deadline.Done():
			return fmt.Errorf("dockerd does not answer after %s; the end of %s: %s", patience, log, tail(log))
		case <-again.C:
			if machine.EngineAnswers(deadline) {
				return nil
			}
		}
	}
}

// tail returns the last lines of a log.
func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-5):], []byte("\n")))
}

// Command ways counts the packages, files and functions of Weir that a request runs through in a sidecar, with
// credits in hand and without. It has to be built with coverage of all that it counts, as `make ways` does. What
// a sidecar runs through by itself in a moment is left out.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/coverage"
	"time"
)

const (
	// patience is how long a sidecar may take to enforce its policy.
	patience = 10 * time.Second
	// moment is how long what an event began may take to end.
	moment = 200 * time.Millisecond
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "weir-ways-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s, err := start(ctx, dir)
	if err != nil {
		return err
	}
	defer func() {
		stop()
		<-s.ended //nolint:errcheck // it ends because it was stopped
	}()
	const used, fresh = "a", "b" // keys of the limit
	for deadline := time.Now().Add(patience); s.leases.Load() == 0; time.Sleep(moment / 10) {
		if err := get(ctx, s.port, used); err != nil && time.Now().After(deadline) {
			return err
		}
	}
	for range 100 { // from these on it knows how much to lease
		if err := get(ctx, s.port, used); err != nil {
			return err
		}
	}
	time.Sleep(10 * moment)

	idle, err := record(filepath.Join(dir, "idle"), func() error { return nil })
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "| a request | packages | files | functions |\n|---|---|---|---|")
	for _, w := range []struct{ name, key string }{{"with credits in hand", used}, {"that waits for a lease", fresh}} {
		all, err := s.request(ctx, dir, w.key, w.key == fresh)
		if err != nil {
			return fmt.Errorf("a request %s: %w", w.name, err)
		}
		packages, files, functions := all.without(idle).count()
		fmt.Fprintf(out, "| %s | %d | %d | %d |\n", w.name, packages, files, functions)
	}
	return nil
}

// request returns what a request of a key runs through that leases, or one that does not.
func (s *subject) request(ctx context.Context, dir, key string, leases bool) (functions, error) {
	for try := range 10 {
		before := s.leases.Load()
		all, err := record(filepath.Join(dir, fmt.Sprint(key, try)), func() error { return get(ctx, s.port, key) })
		if err != nil || s.leases.Load() > before == leases {
			return all, err
		}
	}
	return nil, fmt.Errorf("it never happens that it leases: %t", leases)
}

// get sends a request of a key by way of the sidecar.
func get(ctx context.Context, port, key string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(address, port)+"/", http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set(keyHeader, key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the sidecar answered %s", answer.Status)
	}
	return nil
}

// record returns what runs from when an event begins until a moment after it.
func record(dir string, event func() error) (functions, error) {
	if err := errors.Join(os.Mkdir(dir, 0o755), coverage.ClearCounters()); err != nil {
		return nil, err
	}
	if err := event(); err != nil {
		return nil, err
	}
	time.Sleep(moment)
	if err := errors.Join(coverage.WriteMetaDir(dir), coverage.WriteCountersDir(dir)); err != nil {
		return nil, err
	}
	text, err := exec.Command("go", "tool", "covdata", "func", "-i="+dir).Output() //nolint:noctx // ends by itself
	if err != nil {
		return nil, fmt.Errorf("go tool covdata: %w", err)
	}
	return read(string(text)), nil
}

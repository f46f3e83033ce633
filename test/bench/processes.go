package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/weir-dev/weir/pkg/limiter"
)

// processes are programs that run beside this one, with a directory of their own.
type processes struct {
	dir     string
	stopped []func()
}

// close stops all of them, the latest first.
func (p *processes) close() {
	for _, stop := range slices.Backward(p.stopped) {
		stop()
	}
}

// settle makes the directory.
func (p *processes) settle() (err error) {
	if p.dir, err = os.MkdirTemp("", "weir-bench-"); err == nil {
		p.stopped = append(p.stopped, func() { _ = os.RemoveAll(p.dir) })
	}
	return err
}

// build compiles a program of a module, static and without symbols, as images have it.
// Its directory is relative to this module's.
func (p *processes) build(module, program string) error {
	build := exec.Command("go", "-C", module, "build", "-tags=grpcnotrace", "-trimpath", "-ldflags=-s -w", "-o", p.dir+"/", program) //nolint:gosec,noctx // our own
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", program, err, out)
	}
	return nil
}

// run starts a program, one that was built unless its path is given, with variables added
// to its environment, and returns its process ID.
func (p *processes) run(program string, env []string, args ...string) (pid int, err error) {
	if !strings.Contains(program, "/") {
		program = filepath.Join(p.dir, program)
	}
	run := exec.Command(program, args...) //nolint:gosec,noctx // our own, and haproxy
	run.Env = append(os.Environ(), env...)
	if err := run.Start(); err != nil {
		return 0, err
	}
	p.stopped = append(p.stopped, func() {
		_ = run.Process.Kill()
		_ = run.Wait()
	})
	return run.Process.Pid, nil
}

// footprint shows how much memory a key takes beyond its own bytes.
func footprint(show func(*table)) error {
	const n, goal = 1_000_000, 160
	t := &table{
		title: "1,000,000 keys, live heap per key beyond the key's bytes",
		note:  fmt.Sprintf("Goal: at most %d bytes.", goal),
		head:  []string{"", "bytes", ""},
	}
	for i, c := range []func() contender{
		func() contender { return weirKeyedOn("weir", limiter.MaxLimit, generous{}) },
		func() contender { return xtimeKeyed(plenty) },
		func() contender { return sethvargo(plenty) },
	} {
		keys := makeKeys(n)
		before := heap()
		filled := c()
		for _, k := range keys {
			filled.decide(k)
		}
		per := float64(heap()-before) / n
		verdict := ""
		if i == 0 {
			verdict = judge(per, per, goal, 0)
		}
		t.add(filled.name, fmt.Sprintf("%.0f", per), verdict)
		filled.close()
		runtime.KeepAlive(keys)
	}
	show(t)
	return nil
}

// heap returns the bytes that live objects take.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

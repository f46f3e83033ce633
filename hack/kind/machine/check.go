package machine

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/weir-dev/weir/hack/kind/docker"
)

// facts are what decides whether a machine can run a cluster.
type facts struct {
	engine      bool     // a Docker engine answers
	host        string   // DOCKER_HOST
	system      string   // runtime.GOOS
	root        bool     // this process runs as root
	programs    []string // which of those that matter are on the PATH
	filesystems string   // /proc/filesystems
	cgroups     string   // /proc/mounts
}

// Check returns an *UnavailableError when this machine can never run an engine
// with a cluster in it. It changes nothing and asks no other machine.
func Check(ctx context.Context) error {
	f := facts{
		host:        os.Getenv("DOCKER_HOST"),
		system:      runtime.GOOS,
		root:        os.Geteuid() == 0,
		filesystems: read("/proc/filesystems"),
		cgroups:     read("/proc/mounts"),
	}
	for _, program := range []string{"docker", "dockerd", "apt-get", "debootstrap", "iptables"} {
		if _, err := exec.LookPath(program); err == nil {
			f.programs = append(f.programs, program)
		}
	}
	f.engine = EngineAnswers(ctx)
	return f.judge()
}

// EngineAnswers reports whether a Docker engine can be used as it is.
func EngineAnswers(ctx context.Context) bool {
	_, err := docker.Output(ctx, "version", "--format", "{{.Server.Version}}")
	return err == nil
}

func (f facts) has(program string) bool { return slices.Contains(f.programs, program) }

func (f facts) judge() error {
	switch {
	case f.engine:
		return nil
	case f.host != "":
		return &UnavailableError{"no Docker engine answers at DOCKER_HOST=" + f.host, "start that engine, or unset DOCKER_HOST"}
	case f.system != "linux":
		return &UnavailableError{"no Docker engine answers", "start Docker, for example Docker Desktop"}
	case !f.root:
		return &UnavailableError{"no Docker engine answers and only root can start one", "start Docker, or run as root"}
	case !f.has("apt-get") && (!f.has("dockerd") || !f.has("docker")):
		return &UnavailableError{"Docker is not installed and there is no apt-get to install it with", "install Docker"}
	case !hasOverlay(f.filesystems):
		return &UnavailableError{"the kernel has no overlay file system", "load the module: modprobe overlay"}
	case !strings.Contains(f.cgroups, " cgroup ") && !strings.Contains(f.cgroups, " cgroup2 "):
		return &UnavailableError{"no control groups are mounted", "mount them: mount -t cgroup2 cgroup2 /sys/fs/cgroup"}
	}
	return nil
}

func hasOverlay(filesystems string) bool {
	for line := range strings.Lines(filesystems) {
		if strings.TrimSpace(strings.TrimPrefix(line, "nodev")) == "overlay" {
			return true
		}
	}
	return false
}

// read returns a file of the kernel, or nothing where there is none.
func read(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(content))
}

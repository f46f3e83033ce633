package machine

import (
	"errors"
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	able := func() facts {
		return facts{
			system: "linux", root: true, programs: []string{"apt-get"},
			filesystems: "nodev\tsysfs\nnodev\toverlay\n\text4", cgroups: "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0",
		}
	}
	for name, test := range map[string]struct {
		change func(*facts)
		reason string // empty: the machine can
	}{
		"root and apt":           {func(*facts) {}, ""},
		"an engine is enough":    {func(f *facts) { *f = facts{engine: true} }, ""},
		"docker without apt":     {func(f *facts) { f.programs = []string{"docker", "dockerd"} }, ""},
		"older control groups":   {func(f *facts) { f.cgroups = "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0" }, ""},
		"DOCKER_HOST is dead":    {func(f *facts) { f.host = "tcp://x:1" }, "DOCKER_HOST=tcp://x:1"},
		"another system":         {func(f *facts) { f.system = "darwin" }, "no Docker engine answers"},
		"not root":               {func(f *facts) { f.root = false }, "only root"},
		"neither docker nor apt": {func(f *facts) { f.programs = []string{"dockerd"} }, "not installed"},
		"no overlay":             {func(f *facts) { f.filesystems = "nodev\toverlayish\n" }, "overlay"},
		"no control groups":      {func(f *facts) { f.cgroups = "tmpfs /sys/fs/cgroup tmpfs rw 0 0" }, "control groups"},
	} {
		t.Run(name, func(t *testing.T) {
			f := able()
			test.change(&f)
			err := f.judge()
			if test.reason == "" {
				if err != nil {
					t.Errorf("unavailable: %v", err)
				}
				return
			}
			var unavailable *UnavailableError
			if !errors.As(err, &unavailable) {
				t.Fatalf("got %v, want an UnavailableError", err)
			}
			if !strings.Contains(unavailable.Reason, test.reason) || unavailable.Cure == "" {
				t.Errorf("reason %q, cure %q; want a reason with %q and a cure", unavailable.Reason, unavailable.Cure, test.reason)
			}
		})
	}
}

package engine

import (
	"os"
	"strconv"
	"strings"
)

// watchers is how many inotify instances and watches the systemd, kubelets and
// containerds of two clusters of three nodes stay well below. All of them run
// as one user; the kernel's default of 128 instances is too low.
var watchers = map[string]int{
	"/proc/sys/fs/inotify/max_user_instances": 1024,
	"/proc/sys/fs/inotify/max_user_watches":   524288,
}

// raiseLimits raises what is too low where it may. Where it may not, a small
// cluster still starts, so that is not an error.
func raiseLimits() {
	for path, need := range watchers {
		content, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if now, err := strconv.Atoi(strings.TrimSpace(string(content))); err == nil && now < need {
			_ = os.WriteFile(path, []byte(strconv.Itoa(need)), 0)
		}
	}
}

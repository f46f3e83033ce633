package machine

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Capabilities is a set of Linux capabilities: bit n is capability n of
// capabilities(7).
type Capabilities uint64

// names are in the order of the kernel's numbers (linux/capability.h).
var names = [...]string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL",
	"CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP", "CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE",
	"CAP_NET_BROADCAST", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_IPC_LOCK", "CAP_IPC_OWNER",
	"CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_CHROOT", "CAP_SYS_PTRACE", "CAP_SYS_PACCT",
	"CAP_SYS_ADMIN", "CAP_SYS_BOOT", "CAP_SYS_NICE", "CAP_SYS_RESOURCE", "CAP_SYS_TIME",
	"CAP_SYS_TTY_CONFIG", "CAP_MKNOD", "CAP_LEASE", "CAP_AUDIT_WRITE", "CAP_AUDIT_CONTROL",
	"CAP_SETFCAP", "CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG", "CAP_WAKE_ALARM",
	"CAP_BLOCK_SUSPEND", "CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF", "CAP_CHECKPOINT_RESTORE",
}

// Has reports whether the set holds a capability; one that this package does not
// know by name is taken to be held, so that nothing is removed by ignorance.
func (c Capabilities) Has(name string) bool {
	for number, known := range names {
		if known == name {
			return c&(1<<number) != 0
		}
	}
	return true
}

// Held is what a process of this program may hand on: the bounding set without
// what it may not raise itself.
func Held() (Capabilities, error) {
	status, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("read the capabilities of this process: %w", err)
	}
	defer status.Close()
	return parseHeld(status)
}

// Known is every capability that the running kernel has.
func Known() (Capabilities, error) {
	last, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err != nil {
		return 0, fmt.Errorf("read the kernel's last capability: %w", err)
	}
	number, err := strconv.ParseUint(strings.TrimSpace(string(last)), 10, 6)
	if err != nil {
		return 0, fmt.Errorf("read the kernel's last capability: %w", err)
	}
	return upTo(uint(number)), nil
}

func upTo(last uint) Capabilities {
	return Capabilities(1)<<(last+1) - 1 // all 64 when last is 63: the shift gives 0
}

func parseHeld(status io.Reader) (Capabilities, error) {
	sets := map[string]Capabilities{}
	lines := bufio.NewScanner(status)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if name != "CapBnd" && name != "CapPrm" {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil {
			return 0, fmt.Errorf("%s of /proc/self/status: %w", name, err)
		}
		sets[name] = Capabilities(set)
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("read /proc/self/status: %w", err)
	}
	if len(sets) != 2 {
		return 0, fmt.Errorf("/proc/self/status names %d of CapBnd and CapPrm", len(sets))
	}
	return sets["CapBnd"] & sets["CapPrm"], nil
}

package pages

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Release unmaps the pages of the program's file, and those of the heap that nothing
// lives in. Pages that are used again are read again, mostly from the page cache,
// without anybody noticing. It returns false where the program is not linked
// statically, as images have it: a program that was relocated differs from its file.
func Release() (bool, error) {
	debug.FreeOSMemory()
	if !static() {
		return false, nil
	}
	file, err := os.Executable()
	if err != nil {
		return false, err
	}
	self, err := procfs.Self()
	if err != nil {
		return false, err
	}
	maps, err := self.ProcMaps()
	if err != nil {
		return false, err
	}
	for _, m := range maps {
		if m.Pathname != file || m.Perms.Write {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.StartAddr, m.EndAddr-m.StartAddr, unix.MADV_DONTNEED); errno != 0 {
			return false, fmt.Errorf("unmap %s: %w", file, errno)
		}
	}
	return true, nil
}

// static reports whether the program was linked by Go alone, at fixed addresses.
func static() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return settings["-buildmode"] == "exe" && settings["CGO_ENABLED"] == "0"
}

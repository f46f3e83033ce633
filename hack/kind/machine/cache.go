package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Cache returns a directory for what is built once and used by every checkout,
// below the user's cache directory. It exists on return.
func Cache(elements ...string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w; set XDG_CACHE_HOME or HOME", err)
	}
	dir := filepath.Join(append([]string{base, "weir", "kind"}, elements...)...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create the cache directory: %w", err)
	}
	return dir, nil
}

// Lock keeps other processes of this user from the same work until the file it
// returns is closed. busy is called when it has to wait.
func Lock(name string, busy func()) (*os.File, error) {
	dir, err := Cache()
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	busy()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
	}
	return file, nil
}

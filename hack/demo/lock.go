package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lockName is the file in the demo's directory that a running demo holds. The
// kernel lets go of it when the demo ends, however it ends.
const lockName = "lock"

// claim takes the directory for this process and empties it. The caller closes
// the file to let go.
func claim(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := seize(lock); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := empty(dir); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// seize locks the file and writes this process's id into it.
func seize(lock *os.File) error {
	err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		pid, _ := os.ReadFile(lock.Name()) // without it the message still says what to do
		return fmt.Errorf("a demo is already running here (pid %s); end it first", strings.TrimSpace(string(pid)))
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err = fmt.Fprintln(lock, os.Getpid())
	return err
}

// empty removes what an earlier demo left, except the lock.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == lockName {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

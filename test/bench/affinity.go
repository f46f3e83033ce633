package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// apart has all services run on one of this program's processors, and this program on the others,
// until together is called. There have to be two.
func (s *services) apart() (together func() error, err error) {
	var pids []int
	for _, of := range s.all {
		for _, pid := range of.pids {
			children, err := childrenOf(pid)
			if err != nil {
				return nil, err
			}
			pids = append(append(pids, pid), children...)
		}
	}
	var all, one, others unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, fmt.Errorf("the processors of this program are not known: %w", err)
	}
	for cpu := range 8 * len(all) * strconv.IntSize {
		switch {
		case !all.IsSet(cpu):
		case one.Count() == 0:
			one.Set(cpu)
		default:
			others.Set(cpu)
		}
	}
	own := []int{os.Getpid()}
	together = func() error { return errors.Join(place(pids, &all), place(own, &all)) }
	if err := errors.Join(place(pids, &one), place(own, &others)); err != nil {
		return nil, errors.Join(err, together())
	}
	return together, nil
}

// place has all threads of processes run on some processors, and those that they start.
func place(pids []int, on *unix.CPUSet) error {
	for _, pid := range pids {
		threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
		if err != nil {
			return err
		}
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err != nil {
				return err
			}
			if err := unix.SchedSetaffinity(id, on); err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
				return fmt.Errorf("thread %d stays where it is: %w", id, err)
			}
		}
	}
	return nil
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Outcomes of a mutant.
const (
	killed    = "killed"
	timedOut  = "timed out"
	survived  = "survived"
	unreached = "not reached"
)

// A suite is all tests that a package without a copy runs against.
type suite struct {
	dir      string // where its files are
	timeout  time.Duration
	except   *regexp.Regexp
	binaries []*binary
}

// A binary is the tests of one package.
type binary struct {
	path, dir string
	tests     []*test // cheap ones first
}

type test struct {
	name    string
	cost    time.Duration // beyond that of the binary without tests
	reaches map[int]bool  // mutants
}

// explore runs each test alone.
func (s *suite) explore(stop <-chan os.Signal) error {
	for _, b := range s.binaries {
		start := time.Now()
		if failed, err := s.run(b, 0, stop, "-test.list", "."); err != nil {
			return err
		} else if failed != "" {
			return fmt.Errorf("listing the tests of %s: %s", b.dir, failed)
		}
		empty := time.Since(start)
		list, err := os.ReadFile(s.file("out"))
		if err != nil {
			return err
		}
		for _, name := range regexp.MustCompile(`(?m)^(Test|Fuzz|Example)\w*$`).FindAllString(string(list), -1) {
			if s.except.MatchString(name) {
				continue
			}
			start := time.Now()
			failed, err := s.run(b, 0, stop, "-test.run", "^"+name+"$")
			if errors.Is(err, errTimedOut) {
				fmt.Fprintf(os.Stderr, "%s: %s takes more than %v without a mutant\n", b.dir, name, s.timeout)
				continue
			} else if err != nil {
				return err
			} else if failed != "" {
				fmt.Fprintf(os.Stderr, "%s: %s fails without a mutant\n", b.dir, name)
				continue
			}
			t := &test{name: name, cost: max(0, time.Since(start)-empty), reaches: map[int]bool{}}
			noted, _ := os.ReadFile(s.file("notes")) // none where nothing is reached
			for id := range strings.FieldsSeq(string(noted)) {
				n, _ := strconv.Atoi(id)
				t.reaches[n] = true
			}
			b.tests = append(b.tests, t)
		}
		slices.SortFunc(b.tests, func(x, y *test) int { return int(x.cost - y.cost) })
	}
	return nil
}

// judge runs a mutant, and names the test that killed it.
func (s *suite) judge(m *mutant, stop <-chan os.Signal) (outcome, by string, err error) {
	outcome = unreached
	for _, b := range s.binaries {
		for _, names := range b.batches(m.id) {
			failed, err := s.run(b, m.id, stop, "-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$")
			if errors.Is(err, errTimedOut) {
				return timedOut, "", nil
			} else if err != nil {
				return "", "", err
			} else if failed != "" {
				return killed, failed, nil
			}
			outcome = survived
		}
	}
	return outcome, "", nil
}

// batches returns the names of the tests that reach a mutant, cheap ones first. A process
// runs a batch; the first takes about a second, and each other up to four times the one
// before it.
func (b *binary) batches(id int) (batches [][]string) {
	most, cost := time.Second, time.Duration(0)
	for _, t := range b.tests {
		if !t.reaches[id] {
			continue
		}
		if cost += t.cost; len(batches) == 0 || cost > most {
			if len(batches) > 0 {
				most = min(4*most, time.Hour)
			}
			batches, cost = append(batches, nil), t.cost
		}
		batches[len(batches)-1] = append(batches[len(batches)-1], t.name)
	}
	return batches
}

func (s *suite) file(name string) string { return filepath.Join(s.dir, name) }

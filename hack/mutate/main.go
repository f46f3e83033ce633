// Command mutate lists copies of fields that no test misses when they are not made.
//
//	go run ./hack/mutate [-o FILE] [-match REGEXP] [-also PACKAGES] PACKAGE ...
//
// A mutant is a package without one of its copies: of a pair of a struct literal, whose
// field then is zero, or of an assignment to a field, which then keeps its value. A copy is
// of a variable or a field, perhaps converted, pointed to or read by a method Get….
//
// A package is built once, from an overlay in which each copy asks whether it is the one to
// leave out; nothing in the tree changes. Each test first runs alone, which shows what it
// costs and which copies it reaches. A mutant then runs against the tests that reach it,
// cheap ones first, until one fails. Tests that fail without a mutant are named and not used.
//
// Each mutant is one line of the output: killed, timed out, survived or not reached, where,
// and its text. Those that -o has already are not run again. Processes that a test leaves behind,
// such as an API server, are killed (on Linux).
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"
)

// options are what the command is asked for.
type options struct {
	out      string
	match    *regexp.Regexp
	also     []string
	except   *regexp.Regexp
	timeout  time.Duration
	packages []string
}

func main() {
	o := options{}
	out := flag.String("o", "", "`file` that lines are appended to; mutants in it are not run again")
	match := flag.String("match", "", "`regexp` of mutants to run, as they are printed: file.go:line: text")
	also := flag.String("also", "", "further `packages` whose tests are run, separated by commas")
	except := flag.String("except", "^$", "`regexp` of tests that are not run")
	flag.DurationVar(&o.timeout, "timeout", time.Minute, "bound of one run of tests")
	flag.Parse()
	o.out, o.packages = *out, flag.Args()
	o.match, o.except = regexp.MustCompile(*match), regexp.MustCompile(*except)
	o.also = strings.FieldsFunc(*also, func(r rune) bool { return r == ',' || r == ' ' })
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	defer signal.Stop(stop)
	done, err := lines(o.out)
	if err != nil {
		return err
	}
	packages, err := load(o.packages)
	if err != nil {
		return err
	}
	for _, p := range packages {
		if err := o.try(p, done, stop); err != nil {
			return fmt.Errorf("%s: %w", p.ImportPath, err)
		}
	}
	return nil
}

// try runs the mutants of one package.
func (o *options) try(p *pkg, done map[string]bool, stop <-chan os.Signal) error {
	mutants := slices.DeleteFunc(slices.Clone(p.mutants), func(m *mutant) bool { return done[m.String()] || !o.match.MatchString(m.String()) })
	fmt.Fprintf(os.Stderr, "%s: %d copies, %d of them to try\n", p.ImportPath, len(p.mutants), len(mutants))
	if len(mutants) == 0 {
		return nil
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &suite{dir: dir, timeout: o.timeout, except: o.except}
	if err := s.build(p, o.also); err != nil {
		return err
	}
	if err := s.explore(stop); err != nil {
		return err
	}
	counts := map[string]int{}
	for _, m := range mutants {
		outcome, by, err := s.judge(m, stop)
		if err != nil {
			return err
		}
		counts[outcome]++
		if err := o.print(outcome, m, by); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "%s: %d killed, %d timed out, %d survived, %d not reached\n",
		p.ImportPath, counts[killed], counts[timedOut], counts[survived], counts[unreached])
	return nil
}

func (o *options) print(outcome string, m *mutant, by string) error {
	line := fmt.Sprintf("%s\t%s\t%s\n", outcome, m, by)
	fmt.Print(line)
	if o.out == "" {
		return nil
	}
	f, err := os.OpenFile(o.out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

// lines returns the mutants that a file of output has.
func lines(name string) (map[string]bool, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	done := map[string]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if columns := strings.Split(lines.Text(), "\t"); len(columns) > 1 {
			done[columns[1]] = true
		}
	}
	return done, lines.Err()
}

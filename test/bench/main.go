package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A section is a part of the run that can be asked for by name.
type section struct {
	name, title string
	run         func(show func(*table)) error
}

var sections = []section{
	{"check", "A decision in memory", check},
	{"parallel", "One hot key, many goroutines", parallel},
	{"pool", "A slot of a concurrency pool", overPool},
	{"pool-quality", "What clients get behind a limit on concurrency", quality},
	{"memory", "Bytes per key", footprint},
	{"redis", "Over one Redis", overRedis},
	{"postgres", "Over one Postgres", overPostgres},
	{"keys", "Many keys, each rarely asked for", overKeys},
	{"proxy", "What the sidecar's proxy adds", overProxy},
	{"proxy-memory", "What the sidecar's proxy takes of memory", overProxyMemory},
	{"proxy-cpu", "What the sidecar's proxy takes of the processors", overProxyCPU},
	{"federation", "Leases of a federated budget", overFederation},
}

func main() {
	output := flag.String("o", "", "also write the tables as Markdown to this `file`, in the place of those of the same sections")
	flag.Usage = usage
	flag.Parse()
	if err := run(os.Stdout, *output, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: bench [-o file] [section ...]\n\nsections, all of them without a name:")
	for _, s := range sections {
		fmt.Fprintf(os.Stderr, "  %-12s %s\n", s.name, s.title)
	}
}

func run(w io.Writer, output string, names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			return fmt.Errorf("there is no section %q; -h lists them", name)
		}
	}
	begin := time.Now()
	machine := fmt.Sprintf("%s %s/%s, %d processors, %s", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpu())
	_, _ = fmt.Fprintln(w, machine)
	doc := map[string]string{}
	var failed []error
	for _, s := range sections {
		if len(names) > 0 && !slices.Contains(names, s.name) {
			continue
		}
		var text strings.Builder
		_, _ = fmt.Fprintf(&text, "\n%s\n", machine)
		show := func(t *table) {
			t.print(w)
			t.markdown(&text)
		}
		if err := s.run(show); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", s.name, err))
			continue
		}
		doc[s.title] = text.String()
	}
	_, _ = fmt.Fprintf(w, "\n%d rounds, %s\n", rounds, time.Since(begin).Round(time.Second))
	if output != "" {
		failed = append(failed, document(output, doc))
	}
	return errors.Join(failed...)
}

// document puts sections, by title, into the page in a file.
func document(file string, doc map[string]string) error {
	p, err := open(file)
	if err != nil {
		return err
	}
	for title, text := range doc {
		p.set(title, text)
	}
	titles := make([]string, len(sections))
	for i, s := range sections {
		titles[i] = s.title
	}
	return p.save(titles)
}

// cpu names the processor where the system shows it.
func cpu() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "processor unknown"
	}
	for line := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	return "processor unknown"
}

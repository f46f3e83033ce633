package conformance

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// results are what suites found, by suite and target.
var results struct {
	mu     sync.Mutex
	suites []string
	found  map[[2]string]string

	calls   map[string]string // of Envoy's rate limit service, by who answered
	differs []rateLimitCase   // those of them that are answered otherwise
}

// note notes how many cases of a suite something passed.
func note(suite, at string, passed, of int) {
	results.mu.Lock()
	defer results.mu.Unlock()
	if results.found == nil {
		results.found = map[[2]string]string{}
	}
	if _, ok := results.found[[2]string{suite, direct}]; !ok && at == direct {
		results.suites = append(results.suites, suite)
	}
	results.found[[2]string{suite, at}] = fmt.Sprintf("%d of %d", passed, of)
}

// noteCalls notes how many cases of calls something passed.
func noteCalls(at string, passed, of int) {
	results.mu.Lock()
	defer results.mu.Unlock()
	if results.calls == nil {
		results.calls = map[string]string{}
	}
	results.calls[at] = fmt.Sprintf("%d of %d", passed, of)
}

// noteDifference notes a case in which Envoy's service answers otherwise.
func noteDifference(c rateLimitCase) {
	results.mu.Lock()
	defer results.mu.Unlock()
	results.differs = append(results.differs, c)
}

// callTable is what calls of Envoy's rate limit service were answered, where answers differ.
func callTable() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| calls | %s | %s |\n|---|---|---|\n", limited, envoys)
	fmt.Fprintf(&b, "| passed | %s | %s |\n", results.calls[limited], results.calls[envoys])
	for _, c := range results.differs {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.name, c.want, c.other)
	}
	return b.String()
}

// table is what suites found.
func table() string {
	var b strings.Builder
	all := []string{direct, limited, pooled, other}
	fmt.Fprintf(&b, "| passed | %s |\n|---%s|\n", strings.Join(all, " | "), strings.Repeat("|---", len(all)))
	for _, suite := range results.suites {
		fmt.Fprintf(&b, "| %s |", suite)
		for _, at := range all {
			fmt.Fprintf(&b, " %s |", results.found[[2]string{suite, at}])
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(programs.dir)
	fmt.Print("\n" + table())
	if len(results.calls) > 0 {
		fmt.Print("\n" + callTable())
	}
	os.Exit(code)
}

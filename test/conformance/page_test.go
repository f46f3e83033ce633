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
	os.Exit(code)
}

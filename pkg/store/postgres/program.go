package postgres

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"strings"

	"github.com/weir-dev/weir/pkg/limiter"
)

//go:embed sql/*.sql
var files embed.FS

// A Program is what a build runs in the database. Its functions and types have
// its hash in their names, so builds that differ live side by side on the same
// tables, and a build never runs half of another.
type Program struct {
	relations []string // names of the tables
	tables    string   // SQL that makes what all builds share
	functions string   // SQL that makes the functions
	size      int      // how many functions there are
	suffix    string   // of their names
}

// NewProgram returns a program. Tables is SQL that makes the relations, in schema weir,
// which is there; it is run when one of them is missing, and leaves alone those that are
// there. Functions is SQL that makes the functions, each by CREATE OR REPLACE FUNCTION
// at the start of a line; $build at the end of a name stands for the hash.
func NewProgram(relations []string, tables, functions string) Program {
	sum := sha256.Sum256([]byte(functions))
	p := Program{relations: relations, tables: tables, suffix: "_" + hex.EncodeToString(sum[:5])}
	p.functions = p.SQL(functions)
	p.size = strings.Count("\n"+p.functions, "\nCREATE OR REPLACE FUNCTION ")
	return p
}

// SQL returns a text with the hash in the place of $build.
func (p Program) SQL(text string) string { return strings.ReplaceAll(text, "$build", p.suffix) }

// A program is that of Step.
type program struct {
	Program

	// SQL of the calls.
	count, step, steadyWindow, steadyBucket, refresh string
}

// newProgram returns the program with a clock of the given text.
func newProgram(clock string) program {
	var text strings.Builder
	text.WriteString(clock)
	for _, name := range []string{"ease", "types", "arithmetic", "sliding", "bucket", "fairness", "adopt", "take", "giveback", "reply", "memory", "step", "steady"} {
		text.WriteString(read(name))
	}
	p := NewProgram([]string{"weir.counters", "weir.memory"}, read("schema"), text.String())
	step := "weir.step$build($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)"
	return program{
		Program:      p,
		count:        p.SQL(read("count")),
		step:         p.SQL("SELECT " + step),
		steadyWindow: p.SQL("SELECT coalesce(weir.steady_window$build($1, $3, $4, $8, $9, $11, $19), " + step + ")"),
		steadyBucket: p.SQL("SELECT coalesce(weir.steady_bucket$build($1, $3, $4, $9, $10, $11, $14, $15, $19), " + step + ")"),
		refresh:      p.SQL("SELECT weir.refresh$build($1)"),
	}
}

// call returns the SQL that runs a command.
func (g program) call(p limiter.Params, c limiter.Command) string {
	switch {
	case c.Op != limiter.Take || len(p.Rates) > 1 || p.Fairness.Default > 0:
		return g.step
	case p.Algorithm == limiter.FixedWindow:
		return g.steadyWindow
	case p.Algorithm == limiter.SlidingWindow || p.Algorithm == limiter.SlidingLog:
		return g.step
	default:
		return g.steadyBucket
	}
}

// read returns a file of sql/.
func read(name string) string {
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

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

// A program is what a build runs in the database. Its functions and types have
// its hash in their names, so builds that differ live side by side on the same
// tables, and a build never runs half of another.
type program struct {
	tables    string // SQL that makes what all builds share
	functions string // SQL that makes the functions
	count     int    // how many functions there are
	suffix    string // of their names

	// SQL of the calls.
	step, steadyWindow, steadyBucket, refresh string
}

// newProgram returns the program with a clock of the given text.
func newProgram(clock string) program {
	var text strings.Builder
	for _, name := range []string{"types", "arithmetic", "sliding", "bucket", "fairness", "adopt", "take", "giveback", "reply", "memory", "step", "steady"} {
		text.WriteString(read(name))
	}
	text.WriteString(clock)
	sum := sha256.Sum256([]byte(text.String()))
	suffix := "_" + hex.EncodeToString(sum[:5])
	step := "weir.step" + suffix + "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)"
	functions := strings.ReplaceAll(text.String(), "$build", suffix)
	return program{
		tables:       read("schema"),
		functions:    functions,
		count:        strings.Count(functions, "\nCREATE OR REPLACE FUNCTION "),
		suffix:       suffix,
		step:         "SELECT " + step,
		steadyWindow: "SELECT coalesce(weir.steady_window" + suffix + "($1, $3, $4, $8, $9, $11, $19), " + step + ")",
		steadyBucket: "SELECT coalesce(weir.steady_bucket" + suffix + "($1, $3, $4, $9, $10, $11, $14, $15, $19), " + step + ")",
		refresh:      "SELECT weir.refresh" + suffix + "($1)",
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

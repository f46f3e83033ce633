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
	tables    []Tables
	functions string // SQL that makes the functions
	size      int    // how many functions there are
	suffix    string // of their names
}

// Tables are what all builds share.
type Tables struct {
	// Names are those of the tables, in schema weir, which is there.
	Names []string
	// SQL makes the tables. It is run when one of them is missing, or one of those
	// before was, and leaves alone those that are there.
	SQL string
}

// NewProgram returns a program. Functions is SQL that makes the functions, each by
// CREATE OR REPLACE FUNCTION at the start of a line; $build at the end of a name stands
// for the hash.
func NewProgram(functions string, tables ...Tables) Program {
	sum := sha256.Sum256([]byte(functions))
	p := Program{tables: tables, suffix: "_" + hex.EncodeToString(sum[:5])}
	p.functions = p.SQL(functions)
	p.size = strings.Count("\n"+p.functions, "\nCREATE OR REPLACE FUNCTION ")
	return p
}

// SQL returns a text with the hash in the place of $build.
func (p Program) SQL(text string) string { return strings.ReplaceAll(text, "$build", p.suffix) }

// A program is that of Step.
type program struct {
	Program

	volatile, durable calls
	together          string // SQL, as the following
	refresh, reset    string
}

// calls are the SQL of the calls on counters of one retention.
type calls struct{ count, step, steadyWindow, steadyBucket string }

// columns are those of weir.counters, which weir.counters_durable has too.
const columns = "c.key, c.keep_until, c.generation, c.algorithm, c.expires, c.began, c.pulse, c.asked, c.before, " +
	"c.rates, c.index, c.used, c.entries, c.log, c.tenants, c.shares, c.terms, c.starts, c.ends, c.server, c.writer"

// newProgram returns the program with a clock of the given text.
func newProgram(clock string) program {
	volatile := strings.NewReplacer("$kind", "", "$meet", strings.TrimRight(read("meet"), "\n"),
		"$since", "0", "$valid", "m.named = m.since")
	durable := strings.NewReplacer("$kind", "_durable", "$meet", strings.TrimRight(read("meet_durable"), "\n"),
		"$since", "c.since", "$valid", "m.counters = 'weir.counters_durable'::regclass::oid")
	var text strings.Builder
	text.WriteString(clock)
	for _, name := range []string{"ease", "types", "arithmetic", "sliding", "bucket", "fairness", "adopt", "take", "giveback", "reply", "step", "memory", "reset"} {
		text.WriteString(read(name))
	}
	for _, name := range []string{"sweep", "apply", "steady"} {
		text.WriteString(volatile.Replace(read(name)))
		text.WriteString(durable.Replace(read(name)))
	}
	text.WriteString(read("fresh"))
	text.WriteString(read("reopen"))
	text.WriteString(volatile.Replace(read("together")))
	p := NewProgram(strings.ReplaceAll(text.String(), "$columns", columns),
		Tables{Names: []string{"weir.counters", "weir.memory"}, SQL: read("schema")},
		Tables{Names: []string{"weir.counters_durable", "weir.memory_durable", "weir.volatile", "weir.resets"}, SQL: read("durable")})
	return program{
		Program:  p,
		volatile: p.calls(volatile),
		durable:  p.calls(durable),
		together: p.SQL("SELECT weir.together$build($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"),
		refresh:  p.SQL("SELECT weir.refresh$build($1)"),
		reset:    p.SQL("SELECT weir.set_back$build($1, $2, $3, $4)"),
	}
}

// calls returns the SQL of the calls that kind makes of its text.
func (p Program) calls(kind *strings.Replacer) calls {
	step := "weir.step$kind$build($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)"
	sql := func(text string) string { return p.SQL(kind.Replace(text)) }
	return calls{
		count:        sql(read("count")),
		step:         sql("SELECT " + step),
		steadyWindow: sql("SELECT coalesce(weir.steady_window$kind$build($1, $3, $4, $8, $9, $11, $19, $20, $21, $22), " + step + ")"),
		steadyBucket: sql("SELECT coalesce(weir.steady_bucket$kind$build($1, $3, $4, $9, $10, $11, $14, $15, $19, $20, $21, $22), " + step + ")"),
	}
}

// of returns the calls on counters of the retention.
func (g *program) of(r limiter.Retention) *calls {
	if r.Durable {
		return &g.durable
	}
	return &g.volatile
}

// call returns the SQL that runs a command.
func (g *program) call(p limiter.Params, c limiter.Command) string {
	calls := g.of(p.Retention)
	switch {
	case c.Op != limiter.Take || len(p.Rates) > 1 || p.Fairness.Default > 0:
		return calls.step
	case p.Algorithm == limiter.FixedWindow:
		return calls.steadyWindow
	case p.Algorithm == limiter.SlidingWindow || p.Algorithm == limiter.SlidingLog:
		return calls.step
	default:
		return calls.steadyBucket
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

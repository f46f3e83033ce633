package postgres

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed sql/*.sql
var files embed.FS

// A program is what a build runs in the database. Its functions and types have
// its hash in their names, so builds that differ live side by side on the same
// tables, and a build never runs half of another.
type program struct {
	tables    string // SQL that makes what all builds share
	functions string // SQL that makes the functions
	names     int    // how many functions there are
	suffix    string // of their names
	step      string // SQL of the calls
	refresh   string
}

// newProgram returns the program with a clock of the given text.
func newProgram(clock string) program {
	var text strings.Builder
	for _, name := range []string{"types", "arithmetic", "sliding", "bucket", "fairness", "adopt", "take", "giveback", "reply", "memory", "step"} {
		text.WriteString(read(name))
	}
	text.WriteString(clock)
	sum := sha256.Sum256([]byte(text.String()))
	suffix := "_" + hex.EncodeToString(sum[:5])
	functions := strings.ReplaceAll(text.String(), "$build", suffix)
	return program{
		tables:    read("schema"),
		functions: functions,
		names:     strings.Count(functions, "\nCREATE FUNCTION "),
		suffix:    suffix,
		step:      "SELECT weir.step" + suffix + "($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19)",
		refresh:   "SELECT weir.refresh" + suffix + "($1)",
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

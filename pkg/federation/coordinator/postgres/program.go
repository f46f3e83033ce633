package postgres

import (
	"embed"
	"strings"

	"github.com/weir-dev/weir/pkg/store/postgres"
)

// The functions of State are named after those of pkg/federation/ledger.
//
//go:embed sql/*.sql
var files embed.FS

// newProgram returns the program with a clock of the given text.
func newProgram(clock string) postgres.Program {
	texts := []string{clock}
	for _, name := range []string{"types", "memory", "vouch", "slices", "window", "share", "lease", "report", "step", "observe"} {
		texts = append(texts, read(name))
	}
	names := []string{"weir.budgets", "weir.budget_members", "weir.budget_holders", "weir.budget_closed"}
	return postgres.NewProgram(strings.Join(texts, ""),
		postgres.Tables{Names: names, SQL: read("schema")},
		postgres.Tables{Names: []string{"weir.budget_vouches"}, SQL: read("vouches")}, // these two lose no memory of versions before
		postgres.Tables{Names: []string{"weir.budget_tenants"}, SQL: read("tenants")})
}

// read returns a file of sql/.
func read(name string) string {
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

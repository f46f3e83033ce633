package postgres

import (
	"embed"
	"strings"

	"github.com/weir-dev/weir/pkg/store/postgres"
)

// The functions of State are named after those of pkg/concurrency/pool.
//
//go:embed sql/*.sql
var files embed.FS

// newProgram returns the program with a clock of the given text.
func newProgram(clock string) postgres.Program {
	texts := []string{clock}
	for _, name := range []string{"account", "slots", "memory", "step"} {
		texts = append(texts, read(name))
	}
	return postgres.NewProgram(strings.Join(texts, ""), postgres.Tables{Names: []string{"weir.pools", "weir.holders"}, SQL: read("schema")})
}

// read returns a file of sql/.
func read(name string) string {
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

package architecture_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	wayRow   = regexp.MustCompile("(?m)^\\| `([a-z0-9_/]+\\.go)` \\| `([A-Za-z.]+)` \\|")
	heading  = regexp.MustCompile(`(?m)^### `)
	inPassed = regexp.MustCompile("`([a-z0-9_/]+\\.go): ([A-Za-z.]+)`")
)

// TestTheWaysThroughTheCodeExist reads the tables of docs/architecture.md.
func TestTheWaysThroughTheCodeExist(t *testing.T) {
	const root, ways, rows = "../../..", 5, 30
	page, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := wayRow.FindAllSubmatch(page, -1)
	if n := len(heading.FindAll(page, -1)); n < ways || len(all) < rows {
		t.Fatalf("the page has %d ways with %d functions in all, want at least %d and %d", n, len(all), ways, rows)
	}
	for _, row := range append(all, inPassed.FindAllSubmatch(page, -1)...) {
		file, name := string(row[1]), string(row[2])
		if !declares(t, filepath.Join(root, file), name) {
			t.Errorf("%s has no function %s", file, name)
		}
	}
}

// declares reports whether a file has a function, or the method of a type: Type.Method.
func declares(t *testing.T, file, name string) bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return false
	}
	of, method, isMethod := strings.Cut(name, ".")
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		switch {
		case !ok:
		case !isMethod && f.Recv == nil && f.Name.Name == name:
			return true
		case isMethod && f.Recv != nil && f.Name.Name == method && receiver(f) == of:
			return true
		}
	}
	return false
}

// receiver returns the name of the type that a method is of.
func receiver(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

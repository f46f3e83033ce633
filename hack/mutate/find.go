package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A pkg is a package whose copies are left out.
type pkg struct {
	Dir, ImportPath, Name, Export string
	GoFiles                       []string
	DepOnly                       bool

	short   string // Dir as seen from here, where it is below
	mutants []*mutant
	sources map[string][]byte // by the name of the file
}

// A mutant is a package without one copy.
type mutant struct {
	id        int
	dir, file string
	line      int
	text      string
	at, end   int    // where the source of the copied value is in the file
	was       string // what the field has where the copy is not made; empty: zero
}

func (m *mutant) String() string {
	return fmt.Sprintf("%s:%d: %s", filepath.Join(m.dir, m.file), m.line, m.text)
}

// load returns packages with their copies.
func load(patterns []string) ([]*pkg, error) {
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=Dir,ImportPath,Name,Export,GoFiles,DepOnly"}, patterns...)...) //nolint:noctx // it ends by itself
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	var packages []*pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &pkg{sources: map[string][]byte{}}
		if err := d.Decode(p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			packages = append(packages, p)
		}
	}
	imports := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		p.short = strings.TrimPrefix(p.Dir, here+string(filepath.Separator))
		if err := p.find(imports); err != nil {
			return nil, err
		}
	}
	return packages, nil
}

// find reads the files of a package and its copies.
func (p *pkg) find(imports importer.Lookup) error {
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		source, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.sources[name] = source
		files = append(files, f)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: importer.ForCompiler(set, "gc", imports)}
	if _, err := config.Check(p.ImportPath, set, files, info); err != nil {
		return err
	}
	for _, f := range files {
		if ast.IsGenerated(f) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				p.literal(set, info, n)
			case *ast.AssignStmt:
				p.assignment(set, info, n)
			}
			return true
		})
	}
	slices.SortStableFunc(p.mutants, func(a, b *mutant) int { return cmp.Or(strings.Compare(a.file, b.file), a.at-b.at) })
	for i, m := range p.mutants {
		m.id = i + 1
	}
	return nil
}

// literal adds the pairs of a struct literal that are copies.
func (p *pkg) literal(set *token.FileSet, info *types.Info, literal *ast.CompositeLit) {
	of := info.TypeOf(literal).Underlying()
	if pointer, is := of.(*types.Pointer); is { // an element of a literal of pointers
		of = pointer.Elem().Underlying()
	}
	if _, is := of.(*types.Struct); !is {
		return
	}
	for _, e := range literal.Elts {
		if pair, is := e.(*ast.KeyValueExpr); is && copied(info, pair.Value) {
			p.add(set, pair.Value, p.source(set, pair), "")
		}
	}
}

// assignment adds what an assignment copies to fields.
func (p *pkg) assignment(set *token.FileSet, info *types.Info, a *ast.AssignStmt) {
	if a.Tok != token.ASSIGN || len(a.Lhs) != len(a.Rhs) {
		return
	}
	for i, to := range a.Lhs {
		field, is := to.(*ast.SelectorExpr)
		if !is || info.Selections[field] == nil || !copied(info, a.Rhs[i]) || !types.Identical(info.TypeOf(to), info.TypeOf(a.Rhs[i])) {
			continue
		}
		p.add(set, a.Rhs[i], p.source(set, to)+" = "+p.source(set, a.Rhs[i]), p.source(set, to))
	}
}

func (p *pkg) source(set *token.FileSet, n ast.Node) string {
	from := set.Position(n.Pos())
	return string(p.sources[from.Filename][from.Offset:set.Position(n.End()).Offset])
}

func (p *pkg) add(set *token.FileSet, value ast.Node, text, was string) {
	from := set.Position(value.Pos())
	p.mutants = append(p.mutants, &mutant{
		dir: p.short, file: from.Filename, line: from.Line, text: strings.Join(strings.Fields(text), " "),
		at: from.Offset, end: set.Position(value.End()).Offset, was: was,
	})
}

// copied reports whether an expression only copies a variable or a field.
func copied(info *types.Info, e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return copied(info, e.X)
	case *ast.StarExpr:
		return copied(info, e.X)
	case *ast.UnaryExpr:
		return e.Op == token.AND && copied(info, e.X)
	case *ast.Ident:
		_, is := info.Uses[e].(*types.Var)
		return is
	case *ast.SelectorExpr:
		_, is := info.Uses[e.Sel].(*types.Var)
		return is
	case *ast.CallExpr:
		if method, is := e.Fun.(*ast.SelectorExpr); is && len(e.Args) == 0 {
			return info.Selections[method] != nil && strings.HasPrefix(method.Sel.Name, "Get")
		}
		return len(e.Args) == 1 && info.Types[e.Fun].IsType() && copied(info, e.Args[0])
	}
	return false
}

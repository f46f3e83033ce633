package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

var word = regexp.MustCompile(`\w+`)

// valuesOf returns the constants of a file by their names, for comments that name one.
func valuesOf(file *ast.File) (map[string]string, error) {
	values := make(map[string]string)
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			constant := spec.(*ast.ValueSpec)
			value, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				return nil, err
			}
			values[constant.Names[0].Name] = value
		}
	}
	return values, nil
}

// renderLabels returns the page of the labels and annotations, from their constants and the
// comments on these.
func renderLabels(source []byte) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "metadata.go", source, parser.ParseComments)
	if err != nil {
		return "", err
	}
	values, err := valuesOf(file)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# Labels and annotations\n\n" +
		"Keys that begin with `weir.dev/` are choices of users, those with `config.weir.dev/` tune a sidecar, and those with\n" +
		"`status.weir.dev/` are written by Weir alone. [Injection](../injection.md) says how they work together.\n\n| key | |\n|---|---|\n")
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		about := ""
		for _, spec := range group.Specs {
			constant := spec.(*ast.ValueSpec)
			key := values[constant.Names[0].Name]
			if constant.Doc != nil {
				about = constant.Doc.Text()
			}
			if !strings.Contains(key, "/") {
				continue // a value
			}
			text := prose(strings.TrimPrefix(about, constant.Names[0].Name+" "))
			fmt.Fprintf(&b, "| `%s` | %s |\n", key, word.ReplaceAllStringFunc(text, func(name string) string {
				if value := values[name]; value != "" {
					return "`" + value + "`"
				}
				return name
			}))
		}
	}
	return b.String(), nil
}

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// troubleshooting returns the rows of the tables of a section of the page, each by its cells.
func troubleshooting(t *testing.T, section string) (rows [][]string) {
	t.Helper()
	text := string(read(t, filepath.Join(root, "docs", "troubleshooting.md")))
	_, text, found := strings.Cut(text, "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for line := range strings.Lines(text) {
		if cells := strings.Split(strings.Trim(line, "|\n"), "|"); found && strings.HasPrefix(line, "|") {
			rows = append(rows, cells)
		}
	}
	if len(rows) < 3 {
		t.Fatalf("the section %q has %d rows", section, len(rows))
	}
	return rows
}

// spansOf returns the codes in a column.
func spansOf(rows [][]string, column int) []string {
	found := map[string]bool{}
	for _, cells := range rows {
		for _, m := range span.FindAllStringSubmatch(cells[column], -1) {
			found[m[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// TestEveryReasonIsThere compares the reasons of conditions and of injection with the page.
func TestEveryReasonIsThere(t *testing.T) {
	for _, of := range []struct {
		section, file string
		column        int
		is            func(name, kind string) bool
	}{
		{"Conditions and their reasons", "api/v1alpha1/conditions.go", 1, func(name, _ string) bool { return strings.HasSuffix(name, "Reason") }},
		{"Events of pods", "internal/controlplane/inject/report.go", 0, func(_, kind string) bool { return kind == "Reason" }},
	} {
		var want []string
		for _, decl := range parse(t, of.file).Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				constant := spec.(*ast.ValueSpec)
				kind, _ := constant.Type.(*ast.Ident)
				if of.is(constant.Names[0].Name, nameOf(kind)) {
					value, _ := literal(constant.Values[0])
					want = append(want, value)
				}
			}
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, spansOf(troubleshooting(t, of.section), of.column)); diff != "" || len(want) < 10 {
			t.Errorf("%s: reasons (-%s +docs/troubleshooting.md):\n%s", of.section, of.file, diff)
		}
	}
}

func nameOf(kind *ast.Ident) string {
	if kind == nil {
		return ""
	}
	return kind.Name
}

// unseen are texts in the same packages that authors of objects never see: help of metrics,
// logs, and errors of calls that an API server does not make.
var unseen = []string{
	"Pods that the API server asked about", "Reviews answered with an HTTP status", "The answer to a review was not sent",
	"decode the pod", "read the review", "decode the review", "the body is not the request of", "the content type is", "read the body",
	"it is not JSON", "it is not a JSON object", "the review is too long", "listing the budgets", "inject: marshal",
	"the sidecar gets all connections to", "the sidecar stands in front of", "the sidecar answers the app's questions", // of the Event Injected
	"write NAMESPACE=PATTERN", "write an id, the beginning of ids", "has another rule, too", // of a flag
}

// TestEveryMessageIsThere compares what the webhooks may answer with the page: a message has
// a row with a part of it, and each row is of a message that exists.
func TestEveryMessageIsThere(t *testing.T) {
	shown := spansOf(troubleshooting(t, "Messages of the webhooks"), 0)
	used := map[string]bool{}
	messages := messages(t)
	for message, at := range messages {
		known := slices.ContainsFunc(unseen, func(part string) bool { return strings.Contains(message, part) })
		for _, part := range shown {
			if strings.Contains(message, part) {
				used[part], known = true, true
			}
		}
		if !known {
			t.Errorf("%s: docs/troubleshooting.md has no row of the message %q", at, message)
		}
	}
	for _, part := range shown {
		if !used[part] {
			t.Errorf("docs/troubleshooting.md has a row of %q, which is in no message", part)
		}
	}
	for _, part := range unseen {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(messages)), func(message string) bool { return strings.Contains(message, part) }) {
			t.Errorf("unseen has %q, which is in no text", part)
		}
	}
}

var verb = regexp.MustCompile(`%(\[\d\])?[a-z]`)

// messages returns the texts of at least four words, with … for each value, and where they are.
func messages(t *testing.T) map[string]string {
	t.Helper()
	var files []string
	for _, pattern := range []string{
		"internal/controlplane/webhook/*.go", "internal/controlplane/translate/*.go", "internal/controlplane/inject/*.go",
		"internal/controlplane/resolve/budgets.go", "internal/controlplane/resolve/ids.go", "pkg/policy/expression.go", "pkg/policy/value.go", "pkg/limiter/params.go",
	} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	texts := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parse(t, filepath.ToSlash(name)), func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := literal(e)
			// The schema refuses the parameters of a limit before, except where it cannot compute.
			if cured := filepath.Base(file) != "params.go" || strings.Contains(text, "choose"); ok && cured && len(strings.Fields(text)) > 3 {
				texts[strings.ReplaceAll(verb.ReplaceAllString(text, "…"), "%%", "%")] = name
			}
			return !ok
		})
	}
	return texts
}

func parse(t *testing.T, name string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, filepath.FromSlash(name)), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// literal returns the text of a literal, or of several that are added.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		left, first := literal(e.X)
		right, second := literal(e.Y)
		return left + right, first && second
	default:
		return "", false
	}
}

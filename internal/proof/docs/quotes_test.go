package docs

import (
	"go/ast"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// literals returns the texts in the code of a package, but for its tests.
func literals(t *testing.T, dir string) (texts []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		ast.Inspect(parse(t, dir+"/"+filepath.Base(file)), func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				if text, ok := literal(e); ok {
					texts = append(texts, text)
				}
			}
			return true
		})
	}
	return texts
}

// TestBodiesOfRefusals: a sidecar writes each text that troubleshooting quotes of an answer with an error.
func TestBodiesOfRefusals(t *testing.T) {
	texts := literals(t, "internal/sidecar/proxy")
	answer := regexp.MustCompile(`^ [45]\d\d, `)
	quoted := 0
	for _, cells := range troubleshooting(t, "Symptoms") {
		if !answer.MatchString(cells[0]) {
			continue
		}
		for _, m := range span.FindAllStringSubmatch(cells[0], -1) {
			if strings.HasPrefix(m[1], "weir_") {
				continue // a metric
			}
			quoted++
			if !slices.ContainsFunc(texts, func(text string) bool {
				return strings.Contains(verb.ReplaceAllString(text, "…"), strings.TrimSuffix(m[1], " …"))
			}) {
				t.Errorf("docs/troubleshooting.md quotes %q, which no answer has", m[1])
			}
		}
	}
	if quoted < 5 {
		t.Errorf("the page quotes %d answers", quoted)
	}
}

// TestAttributesOfSpans: the page of operations has those that a sidecar sets, and no others.
func TestAttributesOfSpans(t *testing.T) {
	attribute := regexp.MustCompile(`^weir\.[a-z_.]+$`)
	set, shown := map[string]bool{}, map[string]bool{}
	for _, text := range literals(t, "internal/sidecar/trace") {
		if attribute.MatchString(text) {
			set[text] = true
		}
	}
	for _, text := range spansIn(t, "docs/operations.md") {
		if attribute.MatchString(text) {
			shown[text] = true
		}
	}
	if diff := cmp.Diff(set, shown); diff != "" || len(set) < 5 {
		t.Errorf("attributes (-internal/sidecar/trace +docs/operations.md):\n%s", diff)
	}
}

// TestEveryConditionIsRead: the table of operations has all that objects may have.
func TestEveryConditionIsRead(t *testing.T) {
	text := string(read(t, filepath.Join(root, "docs", "operations.md")))
	_, table, _ := strings.Cut(text, "| Condition | Good |")
	table, _, _ = strings.Cut(table, "\n\n")
	listed, have := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && !strings.HasPrefix(cells[1], "-") {
			names, _, _ := strings.Cut(cells[1], "(")
			for name := range strings.SplitSeq(names, ",") {
				listed[strings.TrimSpace(name)] = true
			}
		}
	}
	ast.Inspect(parse(t, "api/v1alpha1/conditions.go"), func(n ast.Node) bool {
		if constant, ok := n.(*ast.ValueSpec); ok && strings.HasSuffix(constant.Names[0].Name, "Condition") {
			value, _ := literal(constant.Values[0])
			have[value] = true
		}
		return true
	})
	if diff := cmp.Diff(have, listed); diff != "" || len(have) < 10 {
		t.Errorf("conditions (-api/v1alpha1/conditions.go +docs/operations.md):\n%s", diff)
	}
}

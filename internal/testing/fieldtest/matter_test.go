package fieldtest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/testing/fieldtest"
)

type part struct {
	Size int
	Name string
}

type whole struct {
	Parts []part
	Kind  string
	First *part
	Note  string
}

// recorder keeps what a test is failed with.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(_ string, args ...any) {
	r.errors = append(r.errors, args[0].(string))
}

func TestMatter(t *testing.T) {
	inputs := func() []*whole {
		return []*whole{
			{Parts: []part{{Size: 1, Name: "a"}}, Kind: "big", First: &part{Size: 2}},
			{Kind: "small", Parts: []part{{Size: 4, Name: "b"}}, First: &part{Name: "c"}, Note: "seen"},
		}
	}
	for name, tc := range map[string]struct {
		function func(*whole) (any, error)
		ignored  []string
		want     string // fields
	}{
		"all is copied": {func(w *whole) (any, error) { return w, nil }, nil, ""},
		"a field of a part is not": {func(w *whole) (any, error) {
			sizes := []int{}
			for _, p := range w.Parts {
				sizes = append(sizes, p.Size)
			}
			return []any{sizes, w.Kind, w.First.Size, w.Note}, nil
		}, nil, "part.Name"},
		"a value is checked alone": {func(w *whole) (any, error) {
			if w.Kind != "big" && w.Kind != "small" {
				return nil, errors.New("kind")
			}
			return []any{w.Parts, w.First, w.Note}, nil
		}, nil, "whole.Kind"},
		"a field of what is made gets nothing": {func(w *whole) (any, error) {
			made := *w
			made.Note = "seen"
			return []any{&made, w.Note}, nil
		}, nil, "whole.Note"},
		"a field of a part of what is made gets one of two constants": {func(w *whole) (any, error) {
			return []any{w.Kind, w.Parts[0].Size, w.Parts[0].Name, w.First.Size, w.First.Name, w.Note, []part{{Name: "x", Size: w.Parts[0].Size}, {Name: "y", Size: 1}}}, nil
		}, nil, "part.Name"},
		"what is ignored": {func(w *whole) (any, error) { return []any{w.Parts, w.Kind, w.Note}, nil }, []string{"whole.First"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			fieldtest.Matter(r, inputs(), tc.function, tc.ignored...)
			if got := strings.Join(r.errors, " "); got != tc.want {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}

package main

import (
	"path"
	"regexp"
	"strings"
)

const module = "github.com/weir-dev/weir/"

// functions are those that ran, by file and line.
type functions map[function]bool

type function struct{ file, line string }

// row is one of `go tool covdata func`: where a function is, its name, and what part of it ran.
var row = regexp.MustCompile(`(?m)^` + module + `(\S+\.go):(\d+):\s.*\s(\d+\.\d)%$`)

// read returns the functions that ran, at least in part, without those of this program.
func read(text string) functions {
	all := functions{}
	for _, r := range row.FindAllStringSubmatch(text, -1) {
		if r[3] != "0.0" && !strings.HasPrefix(r[1], "hack/") {
			all[function{r[1], r[2]}] = true
		}
	}
	return all
}

func (f functions) without(others functions) functions {
	left := functions{}
	for of := range f {
		if !others[of] {
			left[of] = true
		}
	}
	return left
}

func (f functions) count() (packages, files, all int) {
	in, of := map[string]bool{}, map[string]bool{}
	for each := range f {
		in[path.Dir(each.file)], of[each.file] = true, true
	}
	return len(in), len(of), len(f)
}

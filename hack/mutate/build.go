package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// asked is added to a package: copies ask it whether they are the one to leave out. It notes
// which ask, once each.
const asked = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutantOut, _  = strconv.Atoi(os.Getenv("MUTANT"))
	mutantNotes   = os.Getenv("MUTANT_NOTES") // a file
	mutantReached [%d]atomic.Bool
)

func mutantAt(id int) bool {
	if mutantOut == 0 && !mutantReached[id].Swap(true) {
		f, err := os.OpenFile(mutantNotes, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		f.WriteString(strconv.Itoa(id) + "\n")
		f.Close()
	}
	return id == mutantOut
}

func mutantZero[T any](id int, v T) T {
	if mutantAt(id) {
		var zero T
		return zero
	}
	return v
}

func mutantKeep[T any](id int, was, v T) T {
	if mutantAt(id) {
		return was
	}
	return v
}
`

// build builds the tests of a package and others against its mutants.
func (s *suite) build(p *pkg, also []string) error {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	write := func(name string, source []byte) error {
		file := s.file(name)
		overlay.Replace[filepath.Join(p.Dir, name)] = file
		return os.WriteFile(file, source, 0o600)
	}
	for name, source := range p.sources {
		if err := write(name, instrumented(name, source, p.mutants)); err != nil {
			return err
		}
	}
	if err := write("mutant_asked.go", fmt.Appendf(nil, asked, p.Name, len(p.mutants)+1)); err != nil {
		return err
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.file("overlay.json"), text, 0o600); err != nil {
		return err
	}
	dirs := []string{p.Dir}
	if len(also) > 0 {
		out, err := exec.Command("go", append([]string{"list", "-f", "{{.Dir}}"}, also...)...).Output() //nolint:noctx // it ends by itself
		if err != nil {
			return fmt.Errorf("go list %v: %w", also, err)
		}
		dirs = append(dirs, strings.Fields(string(out))...)
	}
	for i, dir := range dirs {
		b := &binary{path: s.file(fmt.Sprintf("tests%d", i)), dir: dir}
		c := exec.Command("go", "test", "-c", "-overlay", s.file("overlay.json"), "-o", b.path, ".") //nolint:noctx // it ends by itself
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("go test -c in %s: %w\n%s", dir, err, out)
		}
		if _, err := os.Stat(b.path); err == nil { // a package without tests has none
			s.binaries = append(s.binaries, b)
		}
	}
	return nil
}

// instrumented returns the source of a file in which every copy asks.
func instrumented(file string, source []byte, mutants []*mutant) (out []byte) {
	at := 0
	for _, m := range mutants {
		if m.file != file {
			continue
		}
		out = append(out, source[at:m.at]...)
		value := source[m.at:m.end]
		if m.was == "" {
			out = fmt.Appendf(out, "mutantZero(%d, %s)", m.id, value)
		} else {
			out = fmt.Appendf(out, "mutantKeep(%d, %s, %s)", m.id, m.was, value)
		}
		at = m.end
	}
	return append(out, source[at:]...)
}

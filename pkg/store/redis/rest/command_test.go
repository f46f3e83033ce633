package rest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// written returns commands as a client writes them.
func written(commands ...[]string) []byte {
	var b []byte
	for _, words := range commands {
		b = fmt.Appendf(b, "*%d\r\n", len(words))
		for _, w := range words {
			b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	return b
}

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		in   []byte
		want string // commands, and what is left
		err  bool
	}{
		"nothing":                     {nil, "[] ", false},
		"one":                         {written([]string{"GET", "a b"}), `[["get" "a b"]] `, false},
		"an empty word":               {written([]string{"GET", ""}), `[["get" ""]] `, false},
		"two":                         {written([]string{"TIME"}, []string{"PING"}), `[["time"] ["ping"]] `, false},
		"one and a half":              {append(written([]string{"TIME"}), "*1\r\n$4\r\nPI"...), `[["time"]] *1 $4 PI`, false},
		"a script":                    {written([]string{"EVALSHA", "ab", "1", "k", "k", "\x00"}), `[["evalsha" "ab" "1" "k" "6b" "00"]] `, false},
		"a script without keys":       {written([]string{"eval", "return 1", "0"}), `[["eval" "return 1" "0"]] `, false},
		"a script of fewer keys":      {written([]string{"eval", "return 1", "2", "a"}), "", true},
		"a script of no number":       {written([]string{"eval", "return 1", "x"}), "", true},
		"a script of a few":           {written([]string{"eval", "return 1", "-1"}), "", true},
		"a short script":              {written([]string{"eval", "return 1"}), "", true},
		"another protocol":            {[]byte("GET / HTTP/1.1\r\n"), "", true},
		"no words":                    {[]byte("*0\r\n"), "", true},
		"a word in place of a number": {[]byte("*x\r\n"), "", true},
		"another kind of word":        {[]byte("*1\r\n:1\r\n"), "", true},
		"bytes":                       {written([]string{"GET", "\xff"}), "", true},
	} {
		commands, rest, err := parse(tc.in)
		if got := fmt.Sprintf("%q %s", commands, strings.Join(strings.FieldsFunc(string(rest), func(r rune) bool { return r <= ' ' }), " ")); err == nil && got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
		if (err != nil) != tc.err {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// FuzzParse parses in one piece and in two.
func FuzzParse(f *testing.F) {
	f.Add(written([]string{"EVALSHA", "ab", "1", "k", "\x00\xff"}, []string{"TIME"}), 7)
	f.Add([]byte("*1\r\n$-1\r\n*2\r\n"), 2)
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		whole, rest, err := parse(b)
		if err != nil {
			return
		}
		at = min(max(at, 0), len(b))
		first, left, err := parse(b[:at])
		if err != nil {
			t.Fatalf("the first %d bytes are an error: %v", at, err)
		}
		second, left, err := parse(append(slices.Clone(left), b[at:]...))
		if err != nil || len(first)+len(second) != len(whole) || string(left) != string(rest) {
			t.Fatalf("%q in two pieces is %q and %q, %v, with %q left", b, first, second, err, left)
		}
	})
}

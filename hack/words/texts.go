package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Kinds of text. Each has a rate of its own, as a habit in a short kind would not show in
// the whole.
const (
	comments  = "comments"
	messages  = "messages" // errors, logs, Events, help
	documents = "documents"
)

// A text is a paragraph, a comment or a literal.
type text struct {
	kind, at, text string
}

func (t *text) words() int { return len(strings.Fields(t.text)) }

var (
	generated = regexp.MustCompile(`(?m)^(?://|--|#|<!--) ?(?:Code generated|Generated|Written) by `)
	skipped   = map[string]bool{".git": true, ".cache": true, "bin": true, "testdata": true, "node_modules": true}
	itself    = filepath.Join("hack", "words") // its tests have what it looks for
)

// read returns the texts below a directory, by kind.
func read(dir string) (texts map[string][]text, err error) {
	texts = map[string][]text{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (skipped[d.Name()] || strings.HasSuffix(path, itself)):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		parse := parsers[filepath.Ext(path)]
		if parse == nil {
			return nil
		}
		source, err := os.ReadFile(path)
		name := strings.TrimPrefix(path, filepath.Clean(dir)+string(filepath.Separator))
		if err != nil || generated.Match(source) || name == glossaryPage {
			return err
		}
		for _, t := range parse(name, source) {
			texts[t.kind] = append(texts[t.kind], t)
		}
		return nil
	})
	return texts, err
}

var parsers = map[string]func(name string, source []byte) []text{
	".go": goTexts, ".md": pageTexts, ".lua": scriptTexts, ".sql": scriptTexts,
}

// goTexts returns the comments of a Go file, a group of lines as one, and its literals that
// have at least three words.
func goTexts(name string, source []byte) (texts []text) {
	files := token.NewFileSet()
	file := files.AddFile(name, -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	last := -1 // line of the comment before
	for {
		pos, tok, lit := s.Scan()
		line := files.Position(pos).Line
		if tok == token.EOF {
			return texts
		}
		if value, err := strconv.Unquote(lit); tok == token.STRING && err == nil && len(strings.Fields(value)) > 2 {
			texts = append(texts, text{messages, fmt.Sprintf("%s:%d", name, line), value})
		}
		words, isLine := strings.CutPrefix(lit, "//")
		isDirective := isLine && !strings.HasPrefix(words, " ") && words != ""
		if tok != token.COMMENT || isDirective {
			continue
		}
		words = strings.TrimSpace(strings.Trim(words, "/*"))
		if isLine && line == last+1 {
			texts[len(texts)-1].text += joint(words) + words
		} else {
			texts = append(texts, text{comments, fmt.Sprintf("%s:%d", name, line), words})
		}
		last = line
	}
}

// joint returns what joins a line of a comment to the one before.
func joint(line string) string {
	if line == "" {
		return "\n\n"
	}
	return " "
}

var (
	blocks  = regexp.MustCompile("(?s)```.*?```")
	code    = regexp.MustCompile("`[^`\n]*`")
	targets = regexp.MustCompile(`\]\([^)]*\)`)
)

// pageTexts returns the paragraphs of a Markdown page, and the rows of its tables.
func pageTexts(name string, source []byte) (texts []text) {
	page := blocks.ReplaceAllStringFunc(string(source), func(s string) string {
		return strings.Repeat("\n", strings.Count(s, "\n"))
	})
	page = targets.ReplaceAllString(code.ReplaceAllString(page, "`code`"), "]")
	begun := false // a paragraph
	for i, line := range strings.Split(page, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			begun = false
		case begun && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "- "):
			texts[len(texts)-1].text += " " + line
		default:
			begun = !strings.HasPrefix(line, "|")
			texts = append(texts, text{documents, fmt.Sprintf("%s:%d", name, i+1), line})
		}
	}
	return texts
}

// scriptTexts returns the comments of a script in Lua or SQL, adjacent lines as one.
func scriptTexts(name string, source []byte) (texts []text) {
	last := -1
	for i, line := range strings.Split(string(source), "\n") {
		_, words, ok := strings.Cut(line, "--")
		if !ok {
			continue
		}
		words = strings.TrimSpace(words)
		if i == last+1 && len(texts) > 0 {
			texts[len(texts)-1].text += joint(words) + words
		} else {
			texts = append(texts, text{comments, fmt.Sprintf("%s:%d", name, i+1), words})
		}
		last = i
	}
	return texts
}

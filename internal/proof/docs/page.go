package docs

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A Page is a page in Markdown.
type Page struct {
	Path string // in the repository, with slashes
	Text string
}

// Pages returns the pages below docs, and the others that readers are sent to, by path.
func Pages(root string) ([]Page, error) {
	paths := []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "spec/README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			name, err := filepath.Rel(root, file)
			if err != nil {
				return nil, err
			}
			paths = append(paths, filepath.ToSlash(name))
		}
	}
	slices.Sort(paths)
	pages := make([]Page, 0, len(paths))
	for _, name := range paths {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		pages = append(pages, Page{Path: name, Text: string(text)})
	}
	return pages, nil
}

// At returns a position for messages.
func (p *Page) At(line int) string { return fmt.Sprintf("%s:%d", p.Path, line) }

// A Block is a block of code between fences.
type Block struct {
	Language string // as the fence names it, or ""
	Text     string
	Line     int // of its first line
}

// fence matches the lines that begin and end a block. A block in a list is indented.
var fence = regexp.MustCompile("^( *)```([a-z]*)$")

// split returns the blocks, and the lines of the page with those of blocks blank.
func (p *Page) split() (blocks []Block, rest []string) {
	var block *Block
	indent := ""
	for i, line := range strings.Split(p.Text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case m != nil && block == nil:
			block, indent = &Block{Language: m[2], Line: i + 2}, m[1]
			line = ""
		case m != nil:
			blocks = append(blocks, *block)
			block, line = nil, ""
		case block != nil:
			block.Text += strings.TrimPrefix(line, indent) + "\n"
			line = ""
		}
		rest = append(rest, line)
	}
	return blocks, rest
}

// Blocks returns the blocks of code.
func (p *Page) Blocks() []Block {
	blocks, _ := p.split()
	return blocks
}

// A Span is a part of a line: text, code or the target of a link.
type Span struct {
	Text string
	Line int
}

var (
	span = regexp.MustCompile("`([^`]+)`")
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// Spans returns what stands between single backquotes.
func (p *Page) Spans() (spans []Span) {
	_, lines := p.split()
	for i, line := range lines {
		for _, m := range span.FindAllStringSubmatch(line, -1) {
			spans = append(spans, Span{m[1], i + 1})
		}
	}
	return spans
}

// Links returns the targets of links and images, also of those that are broken over lines.
func (p *Page) Links() (links []Span) {
	_, lines := p.split()
	for i, line := range lines {
		lines[i] = span.ReplaceAllString(line, "code")
	}
	text := strings.Join(lines, "\n")
	for _, m := range link.FindAllStringSubmatchIndex(text, -1) {
		links = append(links, Span{text[m[2]:m[3]], 1 + strings.Count(text[:m[2]], "\n")})
	}
	return links
}

var heading = regexp.MustCompile(`^(#{1,6}) (.+)$`)

// Title returns the text of the first heading.
func (p *Page) Title() string {
	_, lines := p.split()
	for _, line := range lines {
		if m := heading.FindStringSubmatch(line); m != nil {
			return strings.ReplaceAll(m[2], "`", "")
		}
	}
	return ""
}

// Anchors returns the fragments by which links reach the headings, as GitHub makes them.
func (p *Page) Anchors() map[string]bool {
	_, lines := p.split()
	anchors := make(map[string]bool)
	for _, line := range lines {
		if m := heading.FindStringSubmatch(line); m != nil {
			name := anchor(m[2])
			for i, free := 1, name; anchors[name]; i++ {
				name = fmt.Sprintf("%s-%d", free, i)
			}
			anchors[name] = true
		}
	}
	return anchors
}

func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
}

// Resolve returns the path in the repository that a link of the page leads to, and the
// fragment. The path is "" where the link leads out of the repository.
func (p *Page) Resolve(target string) (file, fragment string) {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return "", ""
	}
	file, fragment, _ = strings.Cut(target, "#")
	if file == "" {
		return p.Path, fragment
	}
	return path.Join(path.Dir(p.Path), file), fragment
}

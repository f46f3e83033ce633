package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-dev/weir/internal/proof/docs"
)

// sources is where pages link to files of the repository that are not pages.
const sources = "https://github.com/weir-dev/weir/blob/"

// place returns where a page of the repository is on the site, as a path without a slash in
// front.
func place(file string) string {
	switch file {
	case "README.md":
		return "index.md"
	case docs.IndexPath:
		return "contents.md"
	default:
		return strings.ToLower(strings.Replace(strings.TrimPrefix(file, "docs/"), "README.md", "index.md", 1))
	}
}

// stage writes the pages, their images and the navigation to a directory that the generator
// reads.
func stage(root, out, ref string) error {
	if out == "" {
		return fmt.Errorf("-out is empty: name a directory")
	}
	pages, err := docs.Pages(root)
	if err != nil {
		return err
	}
	known := make(map[string]bool)
	for i := range pages {
		known[pages[i].Path] = true
	}
	files := make(map[string][]byte)
	for i := range pages {
		text, images := rewrite(&pages[i], known, ref)
		files[place(pages[i].Path)] = []byte(text)
		for _, image := range images {
			if files[place(image)], err = os.ReadFile(filepath.Join(root, filepath.FromSlash(image))); err != nil {
				return err
			}
		}
	}
	index := pages[slices.IndexFunc(pages, func(p docs.Page) bool { return p.Path == docs.IndexPath })]
	if files[".vitepress/navigation.json"], err = json.MarshalIndent(navigation(&index), "", "  "); err != nil {
		return err
	}
	for name, text := range files {
		file := filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// navigation returns the groups of the index, with addresses of the site.
func navigation(index *docs.Page) []docs.Group {
	groups := docs.Groups(index)
	for _, g := range groups {
		for i := range g.Entries {
			g.Entries[i].Path = "/" + strings.TrimSuffix(place(g.Entries[i].Path), ".md")
		}
	}
	return groups
}

var (
	code = regexp.MustCompile("(?ms)^ *```.*?^ *```$|`[^`\n]*`")
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// rewrite returns the text of a page with links that hold on the site, and the images that it
// shows.
func rewrite(p *docs.Page, known map[string]bool, ref string) (text string, images []string) {
	var b strings.Builder
	at := 0
	for _, part := range append(code.FindAllStringIndex(p.Text, -1), []int{len(p.Text), len(p.Text)}) {
		b.WriteString(link.ReplaceAllStringFunc(p.Text[at:part[0]], func(found string) string {
			file, fragment := p.Resolve(link.FindStringSubmatch(found)[1])
			switch {
			case file == "" || file == p.Path:
				return found
			case path.Ext(file) == ".svg", path.Ext(file) == ".png":
				images = append(images, file)
				fallthrough
			case known[file]:
				return "](" + relative(place(p.Path), place(file)) + hash(fragment) + ")"
			default:
				return "](" + sources + ref + "/" + file + hash(fragment) + ")"
			}
		}))
		b.WriteString(p.Text[part[0]:part[1]])
		at = part[1]
	}
	return b.String(), images
}

func hash(fragment string) string {
	if fragment == "" {
		return ""
	}
	return "#" + fragment
}

// relative returns the way from a page to another file of the site.
func relative(from, to string) string {
	return "./" + strings.Repeat("../", strings.Count(from, "/")) + to
}

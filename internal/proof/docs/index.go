package docs

import (
	"regexp"
	"strings"
)

// IndexPath is the page that has the order of all others.
const IndexPath = "docs/README.md"

// A Group is a section of the index, and so of the site's navigation.
type Group struct {
	Title   string  `json:"text"`
	Entries []Entry `json:"items"`
}

// An Entry is a page of a group. The site replaces the path by its address.
type Entry struct {
	Title string `json:"text"`
	Path  string `json:"link"`
}

var entry = regexp.MustCompile(`\[([^\]]+)\]\(([^)]+\.md)\)`)

// Groups returns the sections of the index that list pages: the links in the first column of
// their tables. Links to other files, such as those of packages, are left to the index.
func Groups(index *Page) (groups []Group) {
	_, lines := index.split()
	for _, line := range lines {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			groups = append(groups, Group{Title: title})
			continue
		}
		cells := strings.Split(line, "|")
		if len(cells) < 3 || len(groups) == 0 {
			continue
		}
		group := &groups[len(groups)-1]
		for _, m := range entry.FindAllStringSubmatch(cells[1], -1) {
			file, _ := index.Resolve(m[2])
			group.Entries = append(group.Entries, Entry{Title: m[1], Path: file})
		}
	}
	listing := groups[:0]
	for _, g := range groups {
		if len(g.Entries) > 0 {
			listing = append(listing, g)
		}
	}
	return listing
}

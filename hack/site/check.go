package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// A document is what a page of the site has for others.
type document struct {
	links   []string
	anchors map[string]bool
}

// checkSite follows every link, image and script of the site that leads to a place on it, and every
// result of its search. It returns those that lead nowhere, and the pages that no search finds.
func checkSite(site fs.FS, base string) (problems []string, err error) {
	documents := make(map[string]*document)
	files := make(map[string]bool)
	err = fs.WalkDir(site, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[name] = true
		if path.Ext(name) != ".html" {
			return nil
		}
		documents[name], err = readDocument(site, name)
		return err
	})
	if err == nil && len(documents) == 0 {
		err = fmt.Errorf("there is no page: name the directory that the generator wrote by -dir")
	}
	results, searchErr := found(site)
	searchable := map[string]bool{notFound: true}
	for _, link := range results {
		name, wrong := follow(link, "index.html", base, files, documents)
		if wrong != "" {
			problems = append(problems, fmt.Sprintf("search: %s: %s", link, wrong))
		}
		searchable[name] = true
	}
	for name, from := range documents {
		if !searchable[name] {
			problems = append(problems, name+": no search finds it")
		}
		for _, link := range from.links {
			if _, wrong := follow(link, name, base, files, documents); wrong != "" {
				problems = append(problems, fmt.Sprintf("%s: %s: %s", name, link, wrong))
			}
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems), errors.Join(err, searchErr)
}

// follow returns the file that a link leads to, and why it leads nowhere, or "".
func follow(link, from, base string, files map[string]bool, documents map[string]*document) (name, wrong string) {
	target, err := url.Parse(link)
	if err != nil {
		return "", err.Error()
	}
	if target.Host != "" || target.Scheme != "" {
		return "", "" // another site, which may be away now
	}
	name = from
	switch {
	case strings.HasPrefix(target.Path, "/"):
		inside, ok := strings.CutPrefix(target.Path, base)
		if !ok {
			return "", "it is not below " + base
		}
		name = inside
	case target.Path != "":
		name = path.Dir(from) + "/" + target.Path
	}
	if name == "" || strings.HasSuffix(name, "/") {
		name += "index.html"
	}
	name = path.Clean(name)
	switch {
	case !files[name]:
		return name, "there is no such file"
	case target.Fragment != "" && (documents[name] == nil || !documents[name].anchors[target.Fragment]):
		return name, "there is no such heading"
	default:
		return name, ""
	}
}

func readDocument(site fs.FS, name string) (*document, error) {
	file, err := site.Open(name)
	if err != nil {
		return nil, err
	}
	root, err := html.Parse(file)
	if err := file.Close(); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	d := &document{anchors: make(map[string]bool)}
	for node := range root.Descendants() {
		for _, a := range node.Attr {
			switch a.Key {
			case "id":
				d.anchors[a.Val] = true
			case "href", "src":
				d.links = append(d.links, a.Val)
			}
		}
	}
	return d, nil
}

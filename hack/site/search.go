package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
)

// searchIndexes are the scripts with what the search of the site finds, one for each language.
const searchIndexes = "assets/chunks/@localSearchIndex*.js"

// notFound is the page that a server answers with in place of one that is missing.
const notFound = "404.html"

// sections are the headings that a search finds, by number.
var sections = regexp.MustCompile(`"documentIds":(\{[^}]*\})`)

// found returns the links to all that a search finds.
func found(site fs.FS) ([]string, error) {
	files, err := fs.Glob(site, searchIndexes)
	if err != nil {
		return nil, err
	}
	var links []string
	for _, file := range files {
		script, err := fs.ReadFile(site, file)
		if err != nil {
			return nil, err
		}
		match := sections.FindSubmatch(script)
		if match == nil {
			return nil, fmt.Errorf("%s: there is no list of headings: see how the generator writes its index now", file)
		}
		var byNumber map[string]string
		if err := json.Unmarshal(match[1], &byNumber); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		links = slices.AppendSeq(links, maps.Values(byNumber))
	}
	return links, nil
}

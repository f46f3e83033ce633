package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A habit is a turn of phrase, or a word, that texts do better without.
type habit struct {
	name   string
	say    string // the cure
	match  *regexp.Regexp
	except *regexp.Regexp // what matches and is right; nil for nothing
	never  bool           // one occurrence is too many
}

// sentence matches what may stand in front of the first word of a sentence.
const sentence = `(?:^|[.:;!?|] +|\n\n)`

var habits = []habit{
	{
		name: "tell", say: "use report, return, say, send or notify",
		match: regexp.MustCompile(`(?i)\b(?:tell|tells|told|telling)\b`),
	},
	{
		name: "is no", say: "write is not a, or has no",
		match:  regexp.MustCompile(`(?i)\b(?:is|are|was|were) (?:no|none)\b`),
		except: regexp.MustCompile(`(?i)\bthere (?:is|are|was|were) (?:no|none)\b|\b(?:is|are|was|were) no (?:longer|more|less|later|earlier|further|slower|faster|larger|smaller|different|other|such)\b`),
	},
	{
		name: "What as a subject", say: "name the thing",
		match: regexp.MustCompile(sentence + `What(?:ever)? [^?.;\n|]*[.;]`),
	},
	{
		name: "Of in front", say: "begin with the subject",
		match: regexp.MustCompile(sentence + `Of (?:the|a|an|what|which|whom|all|those|these|that)\b|, of (?:which|what|whom)\b`),
	},
	{
		name: "so many, so long, so much", say: "name the number",
		match: regexp.MustCompile(`(?i)\bso (?:many|long|much)\b`),
	},
	{
		name: "who as a subject", say: "name the caller or the process",
		match: regexp.MustCompile(`(?i:\bwhoever\b)|` + sentence + `Who [^?.;\n|]*[.;]`),
	},
}

// The glossary is the one page that may have the words to avoid, below a heading.
const (
	glossaryPage = "docs/glossary.md"
	avoided      = "## Words to avoid"
)

// glossary returns the words that the glossary lists as not to be used. Each row of the
// table has one, and what to write for it.
func glossary(dir string) (words []habit, err error) {
	page, err := os.ReadFile(filepath.Join(dir, glossaryPage))
	if err != nil {
		return nil, err
	}
	_, table, _ := strings.Cut(string(page), avoided)
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 2 || strings.HasPrefix(cells[0], "--") || strings.TrimSpace(cells[0]) == "word" {
			continue
		}
		word := strings.TrimSpace(cells[0])
		words = append(words, habit{
			name: word, say: "use " + strings.TrimSpace(cells[1]), never: true,
			match: regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(word) + `\b`),
		})
	}
	return words, nil
}

// find returns where the habit occurs in a text, with the words around it.
func (h *habit) find(text string) (places []string) {
	for _, at := range h.match.FindAllStringIndex(text, -1) {
		from, to := max(0, at[0]-40), min(len(text), at[1]+40)
		place := strings.Join(strings.Fields(strings.ToValidUTF8(text[from:to], "")), " ")
		if h.except == nil || !h.except.MatchString(place) {
			places = append(places, place)
		}
	}
	return places
}

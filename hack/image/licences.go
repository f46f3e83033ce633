package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// licenceDirectory is where an image has the texts of all licences.
const licenceDirectory = "licenses"

// A licence is a text that goes along with a module.
type licence struct {
	name    string // of the file, below the module's directory, with slashes
	content []byte
	ids     []string // as SPDX calls them; none for notices, and for texts that are not known
}

// legal is how files are called that have licences and notices.
var legal = regexp.MustCompile(`(?i)^(licen[cs]es?|copying|copyright|unlicen[cs]e|notices?|patents)([-._].*)?$`)

// known is how many percent of a text have to be those of licences.
const known = 75

// license reads the texts that go along with the module: those in its directory, and, because
// some contain the work of others, those beside its packages that the program contains. It
// fails when none of them is a licence that is known.
func (m *module) license() error {
	seen := map[string]bool{}
	for _, directory := range m.packages {
		for !seen[directory] && within(directory, m.root) {
			seen[directory] = true
			if err := m.read(directory); err != nil {
				return fmt.Errorf("licence of %s: %w", m.path, err)
			}
			directory = filepath.Dir(directory)
		}
	}
	slices.SortFunc(m.licences, func(a, b licence) int { return strings.Compare(a.name, b.name) })
	if len(m.ids()) == 0 {
		return fmt.Errorf("%s %s has no licence that is known among %d files in %s: it may not be passed on in an image", m.path, m.version, len(m.licences), m.root)
	}
	return nil
}

func within(directory, root string) bool {
	return directory == root || strings.HasPrefix(directory, root+string(filepath.Separator))
}

func (m *module) read(directory string) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !legal.MatchString(entry.Name()) || filepath.Ext(entry.Name()) == ".go" {
			continue
		}
		file := filepath.Join(directory, entry.Name())
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // such as of a link to nowhere
				return err
			}
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(m.root, file)
		if err != nil {
			return err
		}
		m.licences = append(m.licences, licence{filepath.ToSlash(name), content, identify(content)})
	}
	return nil
}

// identify returns the licences of a text.
func identify(text []byte) []string {
	scan := licensecheck.Scan(text)
	if scan.Percent < known {
		return nil
	}
	var ids []string
	for _, match := range scan.Match {
		// SPDX knows no licence for the grants in Google's PATENTS.
		if !match.IsURL && !strings.HasPrefix(match.ID, "GooglePatent") {
			ids = append(ids, match.ID)
		}
	}
	return ids
}

// ids returns the licences of the module, each once, ordered.
func (m *module) ids() []string {
	var all []string
	for _, l := range m.licences {
		all = append(all, l.ids...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// files returns the texts as an image has them.
func (m *module) files() []file {
	var out []file
	for _, l := range m.licences {
		out = append(out, file{path.Join(licenceDirectory, m.path, l.name), 0o644, l.content})
	}
	return out
}

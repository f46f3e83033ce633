package nodeimage

import (
	"bufio"
	"fmt"
	"io/fs"
	"strings"

	"github.com/weir-dev/weir/hack/kind/machine"
)

// mirror returns the address of the Debian archive that this machine's apt is
// configured to use. etc is the file system below /etc.
func mirror(etc fs.FS) (string, error) {
	files := []string{"apt/sources.list"}
	for _, pattern := range []string{"apt/sources.list.d/*.list", "apt/sources.list.d/*.sources"} {
		more, err := fs.Glob(etc, pattern)
		if err != nil {
			return "", err
		}
		files = append(files, more...)
	}
	for _, file := range files {
		content, err := fs.ReadFile(etc, file)
		if err != nil {
			continue // sources.list is absent where all sources are in its directory
		}
		find := inList
		if strings.HasSuffix(file, ".sources") {
			find = inStanzas
		}
		if address := find(string(content)); address != "" {
			return address, nil
		}
	}
	return "", &machine.UnavailableError{
		Reason: "kind's own node image cannot be pulled, and apt knows no Debian mirror to build one from",
		Cure:   fmt.Sprintf("run on Debian, add a source of %s to /etc/apt, or give the engine access to a registry", release),
	}
}

// inList looks for the main archive in lines of sources.list(5).
func inList(content string) string {
	lines := bufio.NewScanner(strings.NewReader(content))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 1 && strings.HasPrefix(fields[1], "[") { // options
			for len(fields) > 1 && !strings.HasSuffix(fields[1], "]") {
				fields = append(fields[:1], fields[2:]...)
			}
			fields = append(fields[:1], fields[min(2, len(fields)):]...)
		}
		if len(fields) > 3 && fields[0] == "deb" && isMain(fields[1], fields[2:3], fields[3:]) {
			return fields[1]
		}
	}
	return ""
}

// inStanzas looks for it in the newer format of the same manual page.
func inStanzas(content string) string {
	for stanza := range strings.SplitSeq(content, "\n\n") {
		fields := map[string][]string{}
		for line := range strings.Lines(stanza) {
			if name, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") {
				fields[strings.ToLower(name)] = strings.Fields(value)
			}
		}
		for _, address := range fields["uris"] {
			if isMain(address, fields["suites"], fields["components"]) {
				return address
			}
		}
	}
	return ""
}

// isMain distinguishes the archive itself from its security updates and from the
// archives of others, which lack most packages. Every release is in one archive.
func isMain(address string, suites, components []string) bool {
	path := strings.TrimRight(address, "/")
	if !strings.HasPrefix(path, "http") || !strings.HasSuffix(path, "/debian") {
		return false
	}
	for _, suite := range suites {
		for _, component := range components {
			if component == "main" && !strings.Contains(suite, "-") {
				return true
			}
		}
	}
	return false
}

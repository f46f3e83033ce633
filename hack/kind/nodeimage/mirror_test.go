package nodeimage

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/weir-dev/weir/hack/kind/machine"
)

func TestMirror(t *testing.T) {
	for name, test := range map[string]struct{ file, content, want string }{
		"lines":              {"apt/sources.list", "# deb http://old/debian bookworm main\ndeb http://near/debian bookworm main contrib\n", "http://near/debian"},
		"lines with options": {"apt/sources.list", "deb [arch=amd64 signed-by=/k] http://near/debian/ trixie main\n", "http://near/debian/"},
		"after others": {
			"apt/sources.list.d/all.list",
			"deb http://near/debian-security bookworm-security main\ndeb http://other/debian stable-x main\ndeb https://near/debian bookworm main\n",
			"https://near/debian",
		},
		"stanzas": {
			"apt/sources.list.d/debian.sources",
			"Types: deb\nURIs: http://near/debian-security\nSuites: bookworm-security\nComponents: main\n\n" +
				"Types: deb\n# URIs: http://old/debian\nURIs: http://near/debian\nSuites: bookworm bookworm-updates\nComponents: main\n",
			"http://near/debian",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := mirror(fstest.MapFS{test.file: {Data: []byte(test.content)}})
			if err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestMirrorOfAnotherDistribution(t *testing.T) {
	_, err := mirror(fstest.MapFS{"apt/sources.list": {Data: []byte("deb http://near/ubuntu noble main\n")}})
	var unavailable *machine.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.Cure == "" {
		t.Errorf("got %v, want an UnavailableError with a cure", err)
	}
}

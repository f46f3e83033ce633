package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/hack/kind/machine"
)

// withoutChown is every capability but the first.
const withoutChown = ^machine.Capabilities(1)

func TestBound(t *testing.T) {
	for name, test := range map[string]struct{ given, want string }{
		"a container": {
			`{"ociVersion":"1","process":{"args":["x"],"rlimits":[{"hard":18446744073709551615}],
			  "capabilities":{"bounding":["CAP_CHOWN","CAP_KILL"],"ambient":["CAP_CHOWN"]}}}`,
			`{"ociVersion":"1","process":{"args":["x"],"rlimits":[{"hard":18446744073709551615}],
			  "capabilities":{"bounding":["CAP_KILL"],"ambient":[]}}}`,
		},
		"a process": {
			`{"args":["x"],"capabilities":{"effective":["CAP_KILL","CAP_CHOWN"]}}`,
			`{"args":["x"],"capabilities":{"effective":["CAP_KILL"]}}`,
		},
		"without capabilities": {`{"args":["x"]}`, `{"args":["x"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := bound([]byte(test.given), withoutChown)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(canonical(t, []byte(test.want)), canonical(t, got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestBoundRefusesInvalidDocuments(t *testing.T) {
	if got, err := bound([]byte(`[]`), 0); err == nil {
		t.Errorf("made %s of a list", got)
	}
}

// canonical keeps numbers as they are written.
func canonical(t *testing.T, document []byte) string {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(document, &fields); err != nil {
		t.Fatal(err)
	}
	for name, field := range fields {
		if field[0] == '{' {
			fields[name] = json.RawMessage(canonical(t, field))
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSpecification(t *testing.T) {
	global := []string{"--root", "/run/x", "--log-format", "json"}
	for want, args := range map[string][]string{
		"/b/config.json": {"create", "--bundle", "/b", "--pid-file", "/p", "id"},
		"/c/config.json": {"run", "-b=/c", "id"},
		"config.json":    {"create", "id"},
		"/p.json":        {"exec", "--process", "/p.json", "--detach", "id"},
		"":               {"kill", "--all", "id", "9"},
	} {
		if got := specification(append(global, args...)); got != want {
			t.Errorf("%v: %q, want %q", args, got, want)
		}
	}
}

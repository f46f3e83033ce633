package probe

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseReadsWhatIsWritten(t *testing.T) {
	want := Target{
		Container: "app", Kind: Readiness, TimeoutSeconds: 3,
		HTTP: &HTTP{TLS: true, Port: 8443, Path: "/ready?a=1&b=<2>", Headers: []Header{{"X-Quote", `"$(X)"`}}},
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("target (-want +got):\n%s", diff)
	}
}

func TestParseNamesTheFieldAndTheCure(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no JSON":      {"app/readiness", "write a JSON object"},
		"no container": {`{"kind":"liveness","tcp":{"port":1}}`, "container is empty: name the container"},
		"no kind":      {`{"container":"a","tcp":{"port":1}}`, `kind is "": use startup`},
		"no question":  {`{"container":"a","kind":"liveness"}`, "0 of http, tcp and grpc are set: set one"},
		"two":          {`{"container":"a","kind":"liveness","tcp":{"port":1},"grpc":{"port":1}}`, "2 of http, tcp and grpc are set: set one"},
		"no port":      {`{"container":"a","kind":"liveness","http":{}}`, "port is 0: use 1 to 65535"},
		"no time":      {`{"container":"a","kind":"liveness","timeoutSeconds":-1,"tcp":{"port":1}}`, "timeoutSeconds is -1: use 0 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

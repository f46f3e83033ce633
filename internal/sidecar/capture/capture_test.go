package capture

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	got, err := parse([]string{"--redirect=8080:15006", "--redirect", "9090:15007"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Redirect{{8080, 15006}, {9090, 15007}}, got); diff != "" {
		t.Errorf("redirects (-want +got):\n%s", diff)
	}
}

func TestParseNamesTheArgumentAndTheCure(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"nothing":           {nil, []string{"nothing to capture", "--redirect APPPORT:LISTENPORT"}},
		"an unknown flag":   {[]string{"--port=1"}, []string{"port", "--help"}},
		"an argument":       {[]string{"8080:15006"}, []string{`"8080:15006"`, "--redirect"}},
		"half a pair":       {[]string{"--redirect=8080"}, []string{`"8080"`, "APPPORT:LISTENPORT"}},
		"too large a port":  {[]string{"--redirect=8080:65536"}, []string{"65536", "APPPORT:LISTENPORT"}},
		"port zero":         {[]string{"--redirect=0:15006"}, []string{"0:15006", "APPPORT:LISTENPORT"}},
		"a port to itself":  {[]string{"--redirect=8080:8080"}, []string{"8080:8080", "another LISTENPORT"}},
		"a port led twice":  {[]string{"--redirect=8080:15006", "--redirect=8080:15007"}, []string{"8080:15007", "once"}},
		"three, not a pair": {[]string{"--redirect=1:2:3"}, []string{"1:2:3", "APPPORT:LISTENPORT"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.args)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	if err := Run([]string{"--help"}, &out); err != nil || !strings.Contains(out.String(), "--redirect APPPORT:LISTENPORT") {
		t.Errorf("error %v, output %q", err, &out)
	}
}

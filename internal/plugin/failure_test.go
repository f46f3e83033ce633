package plugin

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// asking are the commands that ask an API server, about objects that it does not have.
var asking = map[string][]string{
	"status":        {"status"},
	"explain":       {"explain", "absent", "--request", "GET /"},
	"why":           {"why"},
	"why POD":       {"why", "absent"},
	"top":           {"top"},
	"top POLICY":    {"top", "absent"},
	"budget status": {"budget", "status"},
	"budget join":   {"budget", "join", "absent", "--member", "a", "--endpoint", "a:1"},
	"brake":         {"brake", "rlp/absent"},
	"release":       {"release", "cpool/absent"},
	"reset":         {"reset", "absent", "all"},
}

// kubeconfigOf returns a file that names an API server.
func kubeconfigOf(t *testing.T, url string) string {
	t.Helper()
	return fileOf(t, fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: me, namespace: shop}}]
clusters: [{name: here, cluster: {server: %q}}]
users: [{name: me, user: {token: t}}]
`, url))
}

// TestErrorsOfTheAPIServerHaveTheirCure: each names the cause and what helps against that, and no
// command waits for a server that does not answer.
func TestErrorsOfTheAPIServerHaveTheirCure(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer stranger.Close()
	for name, tc := range map[string]struct {
		kubeconfig string
		flags      []string
		wants      []string
		never      string
	}{
		"it is down":            {kubeconfigOf(t, closed.URL), nil, []string{"connection refused", closed.URL + " does not answer", "--context"}, " -n"},
		"it is silent":          {kubeconfigOf(t, "http://"+silent.Addr().String()), []string{"--request-timeout", "100ms"}, []string{"has not answered in time", "--request-timeout"}, " -n"},
		"the user is not known": {kubeconfigOf(t, stranger.URL), nil, []string{"log in again"}, " -n"},
		"the user may not":      {powerless, nil, []string{"forbidden", "with -n, or ask for that right"}, "--context"},
	} {
		for command, args := range asking {
			t.Run(name+"/"+command, func(t *testing.T) {
				_, _, err := execute(t, slices.Concat(args, []string{"--kubeconfig", tc.kubeconfig}, tc.flags)...)
				if err == nil {
					t.Fatal("no error")
				}
				for _, want := range tc.wants {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("error %v, want one with %q", err, want)
					}
				}
				if strings.Contains(err.Error(), tc.never) {
					t.Errorf("error %v has %q, which does not help", err, tc.never)
				}
			})
		}
	}
}

// TestMissingObjectsNameTheNamespace: a name is often looked for in the wrong namespace.
func TestMissingObjectsNameTheNamespace(t *testing.T) {
	for command, args := range asking {
		_, stderr, err := execute(t, slices.Concat(args, []string{"--kubeconfig", kubeconfig, "-n", "nowhere"})...)
		if err != nil {
			stderr = err.Error()
		}
		if !strings.Contains(stderr, "namespace nowhere") || !strings.Contains(stderr, "-n") && !strings.Contains(stderr, "-A") {
			t.Errorf("%s: %q, want the namespace and another one's option", command, stderr)
		}
	}
}

// TestAClusterWithoutWeirIsNamed: the kinds are missing, which no other namespace helps against.
func TestAClusterWithoutWeirIsNamed(t *testing.T) {
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"the server could not find the requested resource"}`)
		}
	}))
	defer bare.Close()
	for _, command := range []string{"top", "top POLICY", "budget status", "budget join", "brake", "release", "reset"} {
		_, _, err := execute(t, slices.Concat(asking[command], []string{"--kubeconfig", kubeconfigOf(t, bare.URL)})...)
		if err == nil || !strings.Contains(err.Error(), "install Weir") || strings.Contains(err.Error(), " -n") {
			t.Errorf("%s: error %v, want that Weir is not installed", command, err)
		}
	}
}

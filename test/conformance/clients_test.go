package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	check "github.com/weir-dev/weir/clients/go"
)

// A clientCase is a call of a client of the check API.
type clientCase struct {
	Call    string        `json:"call"`
	Queries []check.Query `json:"queries"`
}

func of(limit string, cost int64, key ...string) check.Query {
	return check.Query{Policy: "checkout", Limit: limit, Cost: cost, Key: key}
}

// clientCases follow each other, over one store.
var clientCases = []clientCase{
	{"check", []check.Query{of("all", 1)}},
	{"check", []check.Query{of("all", 2)}},
	{"check", []check.Query{of("all", 1)}}, // refused
	{"check", []check.Query{of("user", 1, "ann")}},
	{"check", []check.Query{of("pair", 3, "ann", "gold")}},
	{"check", []check.Query{{Policy: "checkout", Limit: "fair", Tenant: "blue", Cost: 1}}},
	{"check", []check.Query{of("queue", 1)}},
	{"check", []check.Query{of("queue", 1)}}, // after a delay
	{"check", []check.Query{of("trial", 1)}},
	{"peek", []check.Query{of("all", 1), of("user", 2, "ann"), of("user", 1, "bob"), of("trial", 1)}},
	{"forecast", []check.Query{of("all", 1), of("user", 4, "bob")}},
	{"forecast", []check.Query{of("user", 1, "bob"), of("trial", 1)}},
	{"check", []check.Query{{Policy: "nobody", Limit: "all", Cost: 1}}},
	{"check", []check.Query{of("all", 1, "ann")}},
	{"peek", []check.Query{of("none", 1)}},
}

// clients are the programs that ask by a client each, with the arguments before the URL of the sidecar.
func clients(t *testing.T) map[string]*exec.Cmd {
	t.Helper()
	drivers := filepath.Join("testdata", "clients")
	python := exec.CommandContext(t.Context(), "python3", filepath.Join(drivers, "drive.py"))
	python.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join("..", "..", "clients", "python"), "PYTHONDONTWRITEBYTECODE=1")
	all := map[string]*exec.Cmd{
		"node":   exec.CommandContext(t.Context(), "node", filepath.Join(drivers, "drive.mjs")),
		"python": python,
	}
	const gson = "/usr/share/java/gson.jar"
	if _, err := exec.LookPath("javac"); err != nil {
		t.Log("the client for Java is left out: there is no javac")
	} else if _, err := os.Stat(gson); err != nil {
		t.Log("the client for Java is left out: install libgoogle-gson-java")
	} else {
		classes := t.TempDir()
		sources := filepath.Join("..", "..", "clients", "java", "dev", "weir", "check", "CheckClient.java")
		compile := exec.CommandContext(t.Context(), "javac", "-Xlint:all", "-Werror", "-cp", gson, "-d", classes, sources, filepath.Join(drivers, "Drive.java"))
		if out, err := compile.CombinedOutput(); err != nil {
			t.Fatalf("javac: %v\n%s", err, out)
		}
		all["java"] = exec.CommandContext(t.Context(), "java", "-cp", classes+":"+gson, "Drive")
	}
	return all
}

// TestClients has each client ask a sidecar of its own the same, by its port and by its socket. It has
// to find what the answer says.
func TestClients(t *testing.T) {
	want := playRaw(t, checked(t, false))
	for _, socket := range []bool{false, true} {
		t.Run(map[bool]string{false: "port", true: "socket"}[socket], func(t *testing.T) { playClients(t, socket, want) })
	}
}

func playClients(t *testing.T, socket bool, want []any) {
	t.Helper()
	t.Run("go", func(t *testing.T) { same(t, want, playGo(t, checked(t, socket))) })
	for name, program := range clients(t) {
		t.Run(name, func(t *testing.T) {
			program.Args = append(program.Args, checked(t, socket))
			var lines bytes.Buffer
			for _, c := range clientCases {
				if err := json.NewEncoder(&lines).Encode(c); err != nil {
					t.Fatal(err)
				}
			}
			program.Stdin, program.Stderr = &lines, os.Stderr
			out, err := program.Output()
			if err != nil {
				t.Fatalf("%s: %v\n%s", program, err, out)
			}
			var got []any
			for printed := bufio.NewScanner(bytes.NewReader(out)); printed.Scan(); {
				got = append(got, plain(t, printed.Bytes()))
			}
			same(t, want, got)
		})
	}
}

// checked starts a sidecar with a store of its own, and returns the URL of its check API, or of its
// socket.
func checked(t *testing.T, socket bool) string {
	t.Helper()
	store, born := startStore(t)
	address, path := freeAddress(t), filepath.Join(t.TempDir(), "check.sock")
	runSidecar(t, checkPolicy(store.Address, born), "--check-address", address, "--check-socket", path, "--rls-address", "")
	client := &check.Client{URL: "http://" + address}
	if socket {
		client.URL = "unix://" + path
	}
	await(t, "the check API", func() error {
		_, err := client.Peek(t.Context(), of("all", 1))
		return err
	})
	return client.URL
}

// playRaw asks without a client.
func playRaw(t *testing.T, url string) (all []any) {
	t.Helper()
	for _, c := range clientCases {
		var question any = map[string]any{"limits": c.Queries}
		if c.Call == "check" {
			question = c.Queries[0]
		}
		body, err := json.Marshal(question)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/"+c.Call, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(w.Body)
		w.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, plain(t, text))
	}
	return all
}

// playGo asks by the client for Go.
func playGo(t *testing.T, url string) (all []any) {
	t.Helper()
	client := &check.Client{URL: url}
	for _, c := range clientCases {
		answer, err := callGo(t.Context(), client, c)
		if failed, ok := errors.AsType[*check.Error](err); ok {
			answer, err = failed, nil
		}
		text, wrong := json.Marshal(answer)
		if err = errors.Join(err, wrong); err != nil {
			t.Fatal(err)
		}
		all = append(all, plain(t, text))
	}
	return all
}

func callGo(ctx context.Context, client *check.Client, c clientCase) (any, error) {
	switch c.Call {
	case "check":
		return client.Check(ctx, c.Queries[0])
	case "peek":
		return client.Peek(ctx, c.Queries...)
	default:
		return client.Forecast(ctx, c.Queries...)
	}
}

// plain returns an answer without the names of its status, with times that are 1 unless they are 0, and
// without what is false or null but for what is allowed: languages print these or not.
func plain(t *testing.T, text []byte) any {
	t.Helper()
	var answer any
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return simplified(answer)
}

func simplified(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = simplified(v[i])
		}
	case map[string]any:
		for name, of := range v {
			n, isNumber := of.(float64)
			switch {
			case name == "storeAgeMs", strings.HasSuffix(name, "Ms") && isNumber && n > 0:
				v[name] = 1.0
			case name == "title", of == nil, of == false && name != "allowed":
				delete(v, name)
			default:
				v[name] = simplified(of)
			}
		}
	}
	return v
}

func same(t *testing.T, want, got []any) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("it prints %d answers, want %d", len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("%s: it finds\n%v, want\n%v", fmt.Sprint(clientCases[i]), got[i], want[i])
		}
	}
}

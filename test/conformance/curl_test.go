package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCurl runs each command with an app directly and through each target, and compares what
// the command and the app saw. Every difference has to be one that docs/proxy.md names.
func TestCurl(t *testing.T) {
	program, err := exec.LookPath("curl")
	if err != nil {
		t.Fatal("curl is not installed: install it with your system's package manager; make test-conformance does")
	}
	var apps []*curlApp
	start := func() string {
		apps = append(apps, startCurlApp(t))
		return apps[len(apps)-1].address
	}
	all := inFrontOf(t, proxyHTTP1, start, func(address string) error { return isThere(t.Context(), address) })
	for _, app := range apps {
		if _, err := app.take(t.Context(), 0); err != nil { // those that asked whether it is there
			t.Fatal(err)
		}
	}
	commands := curlCommands()
	direct := make([]outcome, len(commands))
	t.Run(all[0].name, func(t *testing.T) {
		dir, passed := curlFiles(t), 0
		for i, c := range commands {
			direct[i], err = c.run(t.Context(), program, dir, all[0].address, apps[0], c.reaches())
			if err == nil {
				err = c.expected(direct[i], instead{c.exit, c.codes, c.reaches()})
			}
			if err != nil {
				t.Errorf("%s: %v\n%v", c.name, err, direct[i])
				continue
			}
			passed++
		}
		note("command lines of curl", all[0].name, passed, len(commands))
	})
	for i, to := range all[1:] {
		t.Run(to.name, func(t *testing.T) {
			t.Parallel()
			app, dir, passed := apps[i+1], curlFiles(t), 0
			var differs []string
			for j, c := range commands {
				found := c.compare(t.Context(), program, dir, app, all[0], to, direct[j])
				switch {
				case len(found) == 0:
					passed++
				case to.isOurs():
					t.Errorf("%s: curl %s\n%s", c.name, c.args, strings.Join(found, "\n"))
				default:
					differs = append(differs, c.name)
				}
			}
			note("command lines of curl", to.name, passed, len(commands))
			t.Logf("%d of %d; others: %q", passed, len(commands), differs)
		})
	}
}

// isThere returns an error unless the app is.
func isThere(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/ready", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", res.Status)
	}
	return nil
}

// A command is a command line of curl.
type command struct {
	name  string
	args  string   // in which {url}, {to} and {dir} stand for the target and for a directory of files
	codes string   // of all that it is answered by the app, informational ones as well
	exit  int      // of curl
	seen  int      // requests that reach the app; 0: as many as there are answers
	ours  *instead // where docs/proxy.md names another outcome for sidecars

	stdin     string // a file, or whenRead
	unordered bool   // transfers run at the same time
	aborts    bool   // it leaves in the middle of an answer, after an amount that varies
}

// An instead is an outcome without its details.
type instead struct {
	exit  int
	codes string
	seen  int
}

// reaches returns how many requests reach the app.
func (c *command) reaches() int {
	n := c.seen
	if n == 0 {
		for code := range strings.FieldsSeq(c.codes) {
			if code[0] != '1' {
				n++
			}
		}
	}
	return max(n, 0)
}

// expected returns an error unless the outcome is as the row says.
func (c *command) expected(got outcome, want instead) error {
	if has := (instead{got.exit, got.codes(), len(got.seen)}); has != want {
		return fmt.Errorf("exit code, statuses and requests at the app are %v, want %v", has, want)
	}
	for _, s := range got.seen {
		if s.end != "" && !c.aborts {
			return fmt.Errorf("a request ended since %s", s.end)
		}
	}
	return nil
}

// compare runs the command through a target, and returns what differs from its direct outcome.
func (c *command) compare(ctx context.Context, program, dir string, app *curlApp, at, to target, direct outcome) []string {
	want := c.reaches()
	if c.ours != nil {
		want = c.ours.seen
	}
	if !to.isOurs() {
		want = 0 // others may answer it themselves
	}
	got, err := c.run(ctx, program, dir, to.address, app, want)
	if err != nil {
		return []string{err.Error()}
	}
	if c.ours != nil {
		if err := c.expected(got, *c.ours); err != nil {
			return []string{err.Error()}
		}
		return nil
	}
	return c.differences(direct, got, app.address, at, to)
}

// run runs a command against an address, and returns what it and the app did.
func (c *command) run(ctx context.Context, program, dir, address string, app *curlApp, want int) (o outcome, err error) {
	ctx, stop := context.WithTimeout(ctx, 3*patience)
	defer stop()
	run, heads := c.command(ctx, program, dir, address)
	var said bytes.Buffer
	printed := &shown{app: app}
	run.Stdout, run.Stderr = printed, &said
	app.drain()
	if err := os.WriteFile(filepath.Join(dir, "partial"), numbered[:1000], 0o600); err != nil {
		return o, err
	}
	if err := c.start(ctx, run, app, filepath.Join(dir, c.stdin)); err != nil {
		return o, err
	}
	if err := run.Wait(); err != nil {
		ended, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			return o, err
		}
		o.exit = ended.ExitCode()
	}
	for _, file := range heads {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return o, err
		}
		o.answers = append(o.answers, readHeaders(string(text))...)
		_ = os.Remove(file)
	}
	o.body = fmt.Sprintf("%s, %.60q", sum(bytes.NewReader(printed.all.Bytes())), printed.all.Bytes())
	for line := range strings.Lines(said.String()) {
		if connects, ok := strings.CutPrefix(line, "connects "); ok {
			o.connects += strings.TrimSpace(connects) + " "
		}
	}
	file, err := os.Open(filepath.Join(dir, "partial"))
	if err != nil {
		return o, err
	}
	defer file.Close()
	o.file = sum(file)
	wait, late := context.WithTimeout(ctx, patience)
	defer late()
	o.seen, err = app.take(wait, want)
	return o, err
}

// command returns the command, and the files for the heads of answers.
func (c *command) command(ctx context.Context, program, dir, address string) (*exec.Cmd, []string) {
	var heads []string
	common := func() []string {
		heads = append(heads, filepath.Join(dir, fmt.Sprintf("head-%d", len(heads))))
		return []string{
			"--silent", "--show-error", "--max-time", fmt.Sprint(patience.Seconds()), "--dump-header", heads[len(heads)-1],
			"--write-out", `%{stderr}connects %{num_connects}\n`,
		}
	}
	args := append([]string{"--disable"}, common()...)
	for _, word := range words(c.args) {
		args = append(args, strings.NewReplacer("{url}", "http://"+address, "{to}", address, "{dir}", dir).Replace(word))
		if word == "--next" {
			args = append(args, common()...)
		}
	}
	run := exec.CommandContext(ctx, program, args...)
	run.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")} // no proxies
	return run, heads
}

// words splits a command line. A word in quotes may have blanks, and may be empty.
func words(line string) []string {
	var all []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		word, rest, _ := strings.Cut(line, " ")
		if line[0] == '\'' {
			word, rest, _ = strings.Cut(line[1:], "'")
		}
		all, line = append(all, word), rest
	}
	return all
}

// start starts a command and feeds it.
func (c *command) start(ctx context.Context, run *exec.Cmd, app *curlApp, file string) error {
	if c.stdin == "" {
		return run.Start()
	}
	if c.stdin != whenRead {
		in, err := os.Open(file)
		if err != nil {
			return err
		}
		defer in.Close()
		run.Stdin = in
		return run.Start()
	}
	in, err := run.StdinPipe()
	if err != nil {
		return err
	}
	if err := run.Start(); err != nil {
		return err
	}
	go feed(ctx, in, app.read)
	return nil
}

// whenRead feeds a command each part of a body when the app has read the one before.
const whenRead = "part by part"

// feed writes the parts of a body.
func feed(ctx context.Context, in io.WriteCloser, turn <-chan struct{}) {
	for i := range steps {
		if _, err := fmt.Fprintf(in, "part %d\n", i); err != nil {
			break // the command has ended
		}
		select {
		case <-turn:
		case <-ctx.Done():
		}
	}
	_ = in.Close()
}

// shown is what a command prints. The app may wait for its lines.
type shown struct {
	all bytes.Buffer
	app *curlApp
}

func (s *shown) Write(p []byte) (int, error) {
	for range bytes.Count(p, []byte("\n")) {
		select {
		case s.app.shown <- struct{}{}:
		default: // nothing waits for it
		}
	}
	return s.all.Write(p)
}

// drain forgets what a command before may have left.
func (a *curlApp) drain() {
	for {
		select {
		case <-a.read:
		case <-a.shown:
		default:
			return
		}
	}
}

// curlFiles returns a directory with what commands send.
func curlFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"empty":  nil,
		"small":  numbered[:10_000],
		"1m":     bytes.Repeat(numbered[:1<<15], 32)[:1<<20],
		"5m":     bytes.Repeat(numbered, 53)[:5<<20],
		"field":  []byte("X-Long: " + strings.Repeat("y", 30_000) + "\n"),
		"fields": []byte(strings.Repeat("X-Many: "+strings.Repeat("y", 90)+"\n", 300)),
		"long":   []byte("X-Long: " + strings.Repeat("y", 37<<10) + "\n"),
		"many":   []byte(strings.Repeat("X-Many: "+strings.Repeat("y", 90)+"\n", 400)),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

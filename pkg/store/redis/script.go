package redis

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by it
	"embed"
	"encoding/hex"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// The parts of the scripts. Those of Step are named after the files of pkg/limiter.
//
//go:embed lua
var lua embed.FS

// The files of the scripts, in order, after the preamble.
var (
	stepFiles = []string{
		"guard", "wire", "remembered", "ask",
		"memory", "layout", "calendar", "read", "sliding", "bucket", "adopt", "fairness", "take", "giveback", "keep", "step",
	}
	batchFiles = []string{"guard", "wire", "remembered", "quick", "list", "batch"}
	sweepFiles = []string{
		"guard", "wire", "memory", "layout", "calendar", "sliding", "bucket", "keep", "list", "sweep",
	}
	warmFiles = []string{"guard", "memory", "warm"}
	lookFiles = []string{"guard", "memory", "look"}
	putFiles  = []string{"guard", "memory", "put"}
)

// A script is a Lua program and the name under which a server caches it.
type script struct{ text, sha string }

// preamble returns how every program begins: it reaches the server through a text, since
// tests have one of their own, and learns its time and which instance it is.
func preamble(server string, overHTTP bool) []string {
	texts := []string{server, luaFile("clock"), luaFile("incarnation")}
	if overHTTP {
		texts = slices.Concat([]string{luaFile("text")}, texts, []string{luaFile("leader")})
	}
	return texts
}

// newScript joins a preamble and the files of a program.
func newScript(before, files []string) script {
	texts := slices.Clone(before)
	for _, name := range files {
		texts = append(texts, luaFile(name))
	}
	return join(texts)
}

func join(texts []string) script {
	text := strings.Join(texts, "\n")
	sum := sha1.Sum([]byte(text)) //nolint:gosec // the name Redis gives it
	return script{text: text, sha: hex.EncodeToString(sum[:])}
}

func luaFile(name string) string {
	text, err := lua.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // it is part of the binary
	}
	return string(text)
}

// run calls the script once, by its name and only if the server does not know
// that by its text.
func (s script) run(ctx context.Context, client processor, keys []string, args []any) (any, error) {
	reply, err := send(ctx, client, "evalsha", s.sha, keys, args)
	if goredis.HasErrorPrefix(err, "NOSCRIPT") {
		return send(ctx, client, "eval", s.text, keys, args)
	}
	return reply, err
}

// A processor sends commands: a client or a transaction.
type processor interface {
	Process(ctx context.Context, cmd goredis.Cmder) error
}

func send(ctx context.Context, client processor, name, program string, keys []string, args []any) (any, error) {
	cmd := newCall(ctx, name, program, keys, args)
	if err := client.Process(ctx, cmd); err != nil {
		return nil, err
	}
	return cmd.Result()
}

func newCall(ctx context.Context, name, program string, keys []string, args []any) once {
	line := make([]any, 0, 3+len(keys)+len(args))
	line = append(line, name, program, len(keys))
	for _, k := range keys {
		line = append(line, k)
	}
	cmd := once{goredis.NewCmd(ctx, append(line, args...)...)}
	cmd.SetFirstKeyPos(3)
	return cmd
}

// once is a command that the client never sends twice, whatever its retry
// settings: the first call may have run although its reply was lost, and a
// return that runs twice mints budget.
type once struct{ *goredis.Cmd }

func (once) NoRetry() bool { return true }

// Clone keeps the promise for a client that copies commands.
func (o once) Clone() goredis.Cmder { return once{o.Cmd.Clone().(*goredis.Cmd)} }

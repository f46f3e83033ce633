package redis

import (
	"context"
	"slices"
)

// A Program is a script of the caller's own, which runs as atomically as Apply.
type Program struct{ direct, overHTTP script }

// NewProgram joins the parts of a Lua program. It finds three locals: call, which is
// redis.call; now, the server's time in microseconds since the Unix epoch; and info,
// the section replication of INFO. A line of that, which incarnation.lua of this
// package returns, is the same as long as one instance serves and remembers.
func NewProgram(parts ...string) Program {
	begin := func(overHTTP bool) script {
		return join(slices.Concat(preamble(luaFile("server"), overHTTP), parts))
	}
	return Program{direct: begin(false), overHTTP: begin(true)}
}

// Run runs a program in one round trip, two after the server lost its script cache.
// The keys it may use are named after name, which is neither a counter's nor a value's, and
// one of the suffixes each; they are in one hash slot. The client sends it once. It
// returns what the program does, and the error is that of Apply.
func (s *Store) Run(ctx context.Context, p Program, name string, suffixes []string, args ...any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.explain(err)
	}
	part := partition(name)
	keys := make([]string, len(suffixes))
	for i, suffix := range suffixes {
		keys[i] = prefixes[part] + name + suffix
	}
	program := p.direct
	if s.rest != nil {
		program = p.overHTTP
	}
	reply, err := program.run(ctx, s.lanes.of(part), keys, args)
	if err != nil {
		return nil, s.explain(err)
	}
	return reply, nil
}

// Name is how errors call the servers.
func (s *Store) Name() string { return s.name }

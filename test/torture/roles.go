package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

// A span is the time between two instants.
type span struct{ from, until time.Time }

func (a span) overlaps(b span) bool { return a.from.Before(b.until) && b.from.Before(a.until) }

// members returns the servers of all pairs.
func (g *group) members() (all []*member) {
	for _, pair := range g.pairs {
		all = append(all, pair[:]...)
	}
	return all
}

// look begins to note which servers are primaries.
func (g *group) look(s *store) {
	ctx, stop := context.WithCancel(context.Background())
	g.stop = stop
	for _, m := range g.members() {
		g.watches.Go(func() { m.look(ctx, s.lost) })
	}
}

// look notes when the server says that it is a primary. Between two answers it may have
// been one if either of both says so.
func (m *member) look(ctx context.Context, promoted func()) {
	client := redis.NewClient(&redis.Options{Addr: m.server.Address, DialTimeout: answersIn, ReadTimeout: answersIn, MaxRetries: -1})
	defer client.Close()
	asked, primary := time.Now(), false
	for first := true; sleep(ctx, 50*time.Millisecond); {
		sent := time.Now()
		answer, err := client.Do(ctx, "ROLE").Slice()
		if err != nil || len(answer) == 0 {
			continue
		}
		now := answer[0] == "master"
		if now && !primary && !first {
			promoted()
		}
		if now || primary {
			m.note(span{asked, time.Now()})
		}
		first, asked, primary = false, sent, now
	}
}

// answersIn is how long a server is waited for that is asked for its role.
const answersIn = 200 * time.Millisecond

// note adds a span in which the server may have been a primary.
func (m *member) note(s span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.serves); n > 0 && !m.serves[n-1].until.Before(s.from) {
		m.serves[n-1].until = s.until
		return
	}
	m.serves = append(m.serves, s)
}

// falls notes that the server is unreachable from now on, and returns a function that
// ends this.
func (m *member) falls() (rises func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := len(m.deaf)
	m.deaf = append(m.deaf, span{time.Now(), time.Now().Add(time.Hour)})
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.deaf[i].until = time.Now()
	}
}

// served returns when the server may have served as a primary.
func (m *member) served() []span {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := append([]span(nil), m.serves...)
	for _, d := range m.deaf {
		var left []span
		for _, s := range all {
			if !s.overlaps(d) {
				left = append(left, s)
				continue
			}
			if s.from.Before(d.from) {
				left = append(left, span{s.from, d.from})
			}
			if d.until.Before(s.until) {
				left = append(left, span{d.until, s.until})
			}
		}
		all = left
	}
	return all
}

// splitIn reports whether both servers of a pair may have served as primaries at a time, in
// the given one: then each may grant a limit of its own.
func (g *group) splitIn(from, until time.Time) bool {
	for _, pair := range g.pairs {
		for _, a := range pair[0].served() {
			for _, b := range pair[1].served() {
				if both := (span{later(a.from, b.from), sooner(a.until, b.until)}); both.from.Before(both.until) && both.overlaps(span{from, until}) {
					return true
				}
			}
		}
	}
	return false
}

func sooner(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// primary returns a server that says now that it is a primary, or any when none does.
func (g *group) primary(ctx context.Context) *member {
	all := g.members()
	for _, i := range rand.Perm(len(all)) {
		if role, err := ask(ctx, all[i].server, "ROLE"); err == nil && strings.HasPrefix(role, "[master") {
			return all[i]
		}
	}
	return all[0]
}

// failOver lets the replica of a primary take over that works.
func (g *group) failOver(ctx context.Context) {
	if len(g.sentinels) > 0 {
		_ = order(ctx, g.sentinels[0], "SENTINEL", "FAILOVER", watchedAs) // one may be under way
		return
	}
	for _, m := range g.members() {
		if role, err := ask(ctx, m.server, "ROLE"); err == nil && strings.HasPrefix(role, "[slave") {
			_ = order(ctx, m.server, "CLUSTER", "FAILOVER") // its primary may be away
			return
		}
	}
}

// copies returns when the server has all that its primary has.
func (m *member) copies(ctx context.Context) error {
	return holds(ctx, m.server, "master_link_status:up", "INFO", "replication")
}

func (g *group) close() {
	if g.stop != nil {
		g.stop()
	}
	g.watches.Wait()
	for _, s := range g.sentinels {
		s.Kill()
	}
	for _, m := range g.members() {
		m.server.Kill()
		m.link.Close()
	}
}

// holds returns when the answer to a command holds a text.
func holds(ctx context.Context, server *servers.Server, text string, command ...any) error {
	for {
		answer, err := ask(ctx, server, command...)
		if err == nil && strings.Contains(answer, text) {
			return nil
		}
		if !sleep(ctx, 50*time.Millisecond) {
			return errors.Join(fmt.Errorf("%s: %v does not say %s", server.Address, command, text), err)
		}
	}
}

// ask has a Redis answer a command, in text.
func ask(ctx context.Context, server *servers.Server, command ...any) (string, error) {
	client := redis.NewClient(&redis.Options{Addr: server.Address, Dialer: (&net.Dialer{Timeout: time.Second}).DialContext, ReadTimeout: time.Second, MaxRetries: -1})
	defer client.Close()
	answer, err := client.Do(ctx, command...).Result()
	return fmt.Sprint(answer), err
}

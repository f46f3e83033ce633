package main

import (
	"context"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/internal/testing/devcluster/link"
	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

// signal sends a signal to the server and the processes that it started.
func (s *store) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sig == syscall.SIGSTOP {
		s.aim()
		defer s.falls()
	} else {
		s.rise()
	}
	s.running.SignalAll(sig)
}

// aim chooses the server of a group that a fault happens to: a primary.
func (s *store) aim() {
	if s.group != nil {
		s.hit = s.group.primary(context.Background())
		s.running = s.hit.server
	}
}

// falls notes that the server is unreachable from now on, until rise.
func (s *store) falls() {
	if s.group != nil {
		s.rises = s.hit.falls()
	}
}

func (s *store) rise() {
	if s.rises != nil {
		s.rises()
	}
}

// way returns the link that faults happen to, in a group that of a primary, and a function
// that ends a cut of it.
func (s *store) way(cut bool) (way *link.Link, healed func()) {
	if s.group == nil {
		return s.link, func() {}
	}
	m := s.group.primary(context.Background())
	if cut {
		return m.link, m.falls()
	}
	return m.link, func() {}
}

// lost notes that the replica of a primary took over.
func (s *store) lost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.losses = append(s.losses, loss{at: time.Now(), all: true})
}

// kill ends the server, and what it did not keep is lost.
func (s *store) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.losses = append(s.losses, loss{at: time.Now(), all: s.isRedis && len(s.args) == 0})
	s.aim()
	s.running.SignalAll(syscall.SIGKILL)
	s.falls()
}

// fill makes the server's disk full, or gives it room again.
func (s *store) fill(full bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if full {
		s.losses = append(s.losses, loss{at: time.Now()}) // it may end by that
	}
	return s.disk.SetFull(full)
}

// revive starts the server again if it ends by what happened, for which a Postgres takes
// some seconds.
func (s *store) revive(ctx context.Context) error {
	for began := time.Now(); time.Since(began) < endsWithin && sleep(ctx, 200*time.Millisecond); {
		if !s.serves() {
			return s.restart(ctx)
		}
	}
	return ctx.Err()
}

// endsWithin is how long a server may take to end after its disk was full.
const endsWithin = 10 * time.Second

func (s *store) serves() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.running.Done():
		return false
	default:
		return true
	}
}

// restart starts the server again, on the data it kept.
func (s *store) restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	s.rise()
	for {
		// The rest of the process before may hold its files for a moment.
		if err := s.running.Restart(ctx); err == nil || !sleep(ctx, 200*time.Millisecond) {
			return err
		}
	}
}

// promote lets the replica of the server, which was killed, serve in its place, and
// starts that again as the replica.
func (s *store) promote(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.lead(ctx); err != nil {
		return err
	}
	s.running, s.copy = s.copy, s.running
	s.link.SetServer(s.running.Address)
	s.link.Reset()
	return s.follow(ctx)
}

// lead ends that the replica is one.
func (s *store) lead(ctx context.Context) error {
	if s.isRedis {
		return order(ctx, s.copy, "REPLICAOF", "NO", "ONE")
	}
	conn, err := pgx.Connect(ctx, "postgres://"+servers.PostgresUser+"@"+s.copy.Address+"/"+servers.PostgresDatabase)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "SELECT pg_promote()")
	return err
}

// follow starts the replica as one of the server.
func (s *store) follow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if !s.isRedis {
		return s.copy.Follow(ctx, s.running)
	}
	if err := s.copy.Restart(ctx); err != nil {
		return err
	}
	return order(ctx, s.copy, "REPLICAOF", "127.0.0.1", s.running.Port())
}

// flush deletes what a Redis holds.
func (s *store) flush(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgot.Store(true)
	s.losses = append(s.losses, loss{at: time.Now(), all: true})
	s.aim()
	_ = order(ctx, s.running, "FLUSHALL") // it may be away
}

// order has a Redis carry out a command.
func order(ctx context.Context, server *servers.Server, command ...any) error {
	client := redis.NewClient(&redis.Options{Addr: server.Address})
	defer client.Close()
	return client.Do(ctx, command...).Err()
}

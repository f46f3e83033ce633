package redis

import (
	"context"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/pkg/store"
)

// unable are the replies with which a server says that it cannot serve now, and
// what that means to a user. Any other error reply is a defect of ours, or of what is taken
// for a server.
var unable = []struct{ prefix, meaning string }{
	{"LOADING", "it is loading its data after a start"},
	{"READONLY", "it is a replica, point the policy at the primary"},
	{"OOM", "its memory is full (maxmemory), raise the limit or move other data away"},
	{"NOAUTH", "it wants a password: name a Secret with one in spec.store"},
	{"WRONGPASS", "it refuses the user name or password: correct those in the Secret"},
	{"NOPERM", "its ACL does not allow what Weir needs: give the user the rights that the documentation lists"},
	{"The user executing the script can't run", "its ACL does not allow what Weir needs: give the user the rights that the documentation lists"},
	{"MISCONF", "it cannot write to its disk and therefore refuses writes"},
	{"NOREPLICAS", "it has fewer replicas than min-replicas-to-write asks for"},
	{"MASTERDOWN", "its link to the primary is down"},
	{"CLUSTERDOWN", "its cluster does not serve this part of the keys"},
	{"TRYAGAIN", "it is moving the counter to another node"},
	{"MOVED", "the counter moved to another node"},
	{"ASK", "the counter is moving to another node"},
	{"BUSY", "it is busy with a long script of another client"},
	{"UNBLOCKED", "it changed its role during the call"},
	{"max number of clients", "it has no connection left (maxclients)"},
	{"max daily request limit", "its quota of requests is used up: raise it, or send fewer by larger leases"},
	{"max requests limit", "its quota of requests is used up: raise it, or send fewer by larger leases"},
	{"DB capacity quota", "its quota of data is used up: raise it, or move other data away"},
	{"max concurrent connections", "it has no connection left: raise its quota"},
}

// odd are error replies that are not of an outage, and what they mean to a user.
var odd = []struct{ prefix, meaning string }{
	{"unknown command", "it lacks a command that Weir needs: use Redis 7 or newer, with all commands of scripts and transactions"},
	{"WRONGTYPE", "something else uses a key of Weir's (weir:*): give it another, or Weir another database"},
}

const (
	noRedis     = "it does not answer as Redis does: name the address of a Redis 7 or newer"
	unknownText = "it answers with an error that Weir does not expect: see that it is Redis 7 or newer"
)

// A part is the counters of one partition, which one node of a cluster serves.
type part uint32

// Has implements store.Part.
func (p part) Has(k store.Key) bool { return partition(k.String()) == uint32(p) }

// explainOf is explain for a call of one partition. In a cluster other partitions may be
// served although it is not.
func (s *Store) explainOf(partition uint32, err error) error {
	err = s.explain(err)
	if _, cluster := s.client.(*goredis.ClusterClient); !cluster {
		return err
	}
	if away, ok := errors.AsType[*store.UnavailableError](err); ok {
		away.Part = part(partition)
	}
	return err
}

// explain turns an error of the client into one of this package: unavailable when
// no answer came, or one that the server cannot serve. The server's own error is in the
// cause of a *store.Failure.
func (s *Store) explain(err error) error {
	// A reply of the server is not wrapped, unlike the answer of a dial or a Sentinel.
	if _, ok := err.(goredis.Error); !ok { //nolint:errorlint // see above
		s.relocate()
		return &store.UnavailableError{Store: s.name, Cause: unanswered(err)}
	}
	if why := meaning(err); why != "" {
		return &store.UnavailableError{Store: s.name, Cause: &store.Failure{Why: why, Cause: err}}
	}
	for _, o := range odd {
		if goredis.HasErrorPrefix(err, o.prefix) {
			return fmt.Errorf("%s: %w", s.name, &store.Failure{Why: o.meaning, Cause: err})
		}
	}
	return fmt.Errorf("%s: %w", s.name, &store.Failure{Why: unknownText, Cause: err})
}

// meaning returns what it means that a server cannot serve, "" for another reply.
func meaning(err error) string {
	for _, u := range unable {
		if goredis.HasErrorPrefix(err, u.prefix) {
			return u.meaning
		}
	}
	return ""
}

// unanswered returns why no reply came.
func unanswered(err error) *store.Failure {
	_, replied := errors.AsType[goredis.Error](err)
	why := meaning(err) // of a Sentinel, or of a connection that was made
	switch {
	case errors.Is(err, goredis.Nil):
		why = "no Sentinel knows a primary of this name: write the name that the line sentinel monitor has"
	case why != "":
	case replied:
		why = unknownText
	case errors.Is(err, ErrContended):
		why = ErrContended.Error()
	case errors.Is(err, goredis.ErrPoolTimeout):
		why = "it did not answer in time: every connection waits for it"
	default:
		if f := store.Unreached(err); f != nil {
			return f
		}
		why = noRedis
	}
	return &store.Failure{Why: why, Cause: err}
}

// relocate lets the client of a cluster ask which node serves which counters now. By
// itself it would only when it may try a command again, or after a minute.
func (s *Store) relocate() {
	if cluster, ok := s.client.(*goredis.ClusterClient); ok {
		cluster.ReloadState(context.Background()) // in the background, and not more often than every 200 ms
	}
}

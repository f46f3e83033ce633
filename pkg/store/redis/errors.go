package redis

import (
	"context"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/pkg/store"
)

// unable are the replies with which a server says that it cannot serve now, and
// what that means to a user. Any other error reply is a defect of ours.
var unable = []struct{ prefix, meaning string }{
	{"LOADING", "it is loading its data after a start"},
	{"READONLY", "it is a replica, point the policy at the primary"},
	{"OOM", "its memory is full (maxmemory), raise the limit or move other data away"},
	{"NOAUTH", "it wants a password"},
	{"WRONGPASS", "it refuses the user name or password"},
	{"NOPERM", "its ACL does not allow what Weir needs"},
	{"The user executing the script can't run", "its ACL does not allow what Weir needs"},
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
}

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
// no answer came, or one that the server cannot serve.
func (s *Store) explain(err error) error {
	// A reply is not wrapped: what a dial or a Sentinel answered is none.
	if _, ok := err.(goredis.Error); !ok { //nolint:errorlint // see above
		s.relocate()
		if errors.Is(err, goredis.Nil) {
			err = fmt.Errorf("no Sentinel knows a primary of this name: %w", err)
		}
		return &store.UnavailableError{Store: s.name, Cause: err}
	}
	for _, u := range unable {
		if goredis.HasErrorPrefix(err, u.prefix) {
			return &store.UnavailableError{Store: s.name, Cause: fmt.Errorf("%s: %w", u.meaning, err)}
		}
	}
	return fmt.Errorf("%s: %w", s.name, err)
}

// relocate lets the client of a cluster ask which node serves which counters now. By
// itself it would only when it may try a command again, or after a minute.
func (s *Store) relocate() {
	if cluster, ok := s.client.(*goredis.ClusterClient); ok {
		cluster.ReloadState(context.Background()) // in the background, and not more often than every 200 ms
	}
}

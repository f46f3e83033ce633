package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// settings asks for what a guarantee depends on: how many tables are not as they were
// made, how many standbys are connected, and three settings.
const settings = `
	SELECT ARRAY[
		(SELECT count(*) FROM pg_class WHERE relpersistence <> 'u' AND oid IN ('weir.counters'::regclass, 'weir.memory'::regclass))::text,
		(SELECT count(*) FROM pg_class WHERE relpersistence <> 'p'
			AND oid IN ('weir.counters_durable'::regclass, 'weir.memory_durable'::regclass, 'weir.volatile'::regclass))::text,
		(SELECT count(*) FROM pg_stat_replication)::text,
		current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')]`

// Probe reports what the server guarantees as it is configured now. It proves on the
// way that it decides: the error is that of Apply.
func (s *Store) Probe(ctx context.Context) (store.Facts, error) {
	m, err := s.refresh(ctx)
	if err != nil {
		return store.Facts{}, err
	}
	got, err := Run[[]string](ctx, s, s.program.Program, settings)
	if err != nil {
		return store.Facts{}, err
	}
	if len(got) != 6 {
		return store.Facts{}, errors.New(s.name + " does not say how it is configured")
	}
	replicas, err := strconv.Atoi(got[2])
	if err != nil {
		return store.Facts{}, errors.New(s.name + " does not say how many standbys it has")
	}
	f := facts{logged: got[0] != "0", unlogged: got[1] != "0", replicas: replicas, off: map[string]string{}}
	for i, name := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		if got[3+i] != "on" {
			f.off[name] = got[3+i]
		}
	}
	return store.Facts{
		Now: m.now, Oldest: m.now,
		Volatile: store.Keeping{Guarantee: f.volatile(), Memories: []limiter.MemoryID{m.volatile}},
		Durable:  store.Keeping{Guarantee: f.durable(), Memories: []limiter.MemoryID{m.durable}},
		Lossless: f.losses() == "",
	}, nil
}

// facts are what a guarantee depends on.
type facts struct {
	logged   bool              // tables survive a crash that must not
	unlogged bool              // tables do not that must
	replicas int               // how many are connected
	off      map[string]string // settings that let a crash lose what was answered
}

// volatile returns the guarantee of counters that may be lost.
func (f facts) volatile() store.Guarantee {
	if f.logged {
		return store.Guarantee{
			Grade: store.BestEffort,
			Reason: "tables in schema weir that must not be are logged, so counts that miss the last grants may outlive a crash; " +
				"ALTER TABLE ... SET UNLOGGED counters and memory, or drop the schema",
		}
	}
	return f.alone()
}

// durable returns the guarantee of counters that survive.
func (f facts) durable() store.Guarantee {
	if why := f.losses(); why != "" {
		return store.Guarantee{Grade: store.BestEffort, Reason: why}
	}
	return f.alone()
}

// losses returns how a crash can lose what was answered, and the cure, or "".
func (f facts) losses() string {
	if f.unlogged {
		return "tables in schema weir of durable counters are not logged, so a crash empties them; " +
			"ALTER TABLE ... SET LOGGED counters_durable, memory_durable and volatile, or drop the schema"
	}
	var cures []string
	for _, name := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		if value, ok := f.off[name]; ok {
			cures = append(cures, fmt.Sprintf("%s = on%s", name, present(value)))
		}
	}
	if len(cures) == 0 {
		return ""
	}
	return "a crash of the server's machine may lose the last grants of durable counters without a trace; set " +
		strings.Join(cures, ", ")
}

// present says what a setting is, if it is one of the values that Postgres knows: no other
// bytes of a server get into a reason, which everybody may read.
func present(value string) string {
	switch value {
	case "off", "local", "remote_write", "remote_apply":
		return " (it is " + value + ")"
	}
	return ""
}

// alone returns the guarantee of a server that keeps what it has to.
func (f facts) alone() store.Guarantee {
	if f.replicas == 0 {
		return store.Guarantee{Grade: store.Hard}
	}
	return store.Guarantee{
		Grade: store.HardExceptSplitBrain,
		Reason: strconv.Itoa(f.replicas) + " standbys: after a failover the old primary may grant until it is stopped; " +
			"a failover that fences it first rules that out",
	}
}

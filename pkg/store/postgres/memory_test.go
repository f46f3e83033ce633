package postgres

import "testing"

// TestANewMemoryBeginsAfterAllThatMayHaveBeenServed meets a server that remembers nothing,
// and rows that were copied from one that had dropped counters, or served, at a later
// instant.
func TestANewMemoryBeginsAfterAllThatMayHaveBeenServed(t *testing.T) {
	t.Parallel()
	s := newTimelineStore(t)
	const volatile, durable = "weir.memory", "weir.memory_durable"
	for _, c := range []struct {
		loss, now string
		want      map[string]int64 // where each memory begins
	}{
		{"DROP SCHEMA weir CASCADE", "1000", map[string]int64{volatile: 1001, durable: 1001}},
		// The first lease is up to 1001000.
		{"DELETE FROM weir.memory", "1002000", map[string]int64{volatile: 1002001, durable: 1001}},
		{"DELETE FROM weir.memory", "1003000", map[string]int64{volatile: 2002001, durable: 1001}},
		{"UPDATE weir.memory SET latest = 5000000", "1004000", map[string]int64{volatile: 5000001, durable: 1001}},
		{"UPDATE weir.memory SET since = 7, writer = pg_current_xact_id()::xid", "1005000", map[string]int64{volatile: 2002001, durable: 1001}},
		{"UPDATE weir.memory_durable SET server = '-infinity', writer = pg_current_xact_id()::xid", "1006000", map[string]int64{volatile: 5000001, durable: 1001}},
		{"UPDATE weir.memory_durable SET latest = 6000000", "3000000", map[string]int64{volatile: 5000001, durable: 6000001}},
		{"UPDATE weir.memory_durable SET lineage = 'another', server = '-infinity', writer = pg_current_xact_id()::xid", "9000000", map[string]int64{volatile: 9000001, durable: 9000001}},
	} {
		for _, sql := range []string{c.loss, "SELECT set_config('weir.now', '" + c.now + "', false)"} {
			if _, err := s.conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		var facts []int64
		err := s.conn.QueryRow(t.Context(), s.program.refresh, 10).Scan(&facts)
		if isMissing(err) {
			if err = s.install(t.Context(), s.program.Program); err == nil {
				err = s.conn.QueryRow(t.Context(), s.program.refresh, 10).Scan(&facts)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		for table, want := range c.want {
			var since int64
			if err := s.conn.QueryRow(t.Context(), "SELECT since FROM "+table).Scan(&since); err != nil {
				t.Fatal(err)
			}
			if since != want {
				t.Errorf("after %q at %s %s begins at %d, want %d", c.loss, c.now, table, since, want)
			}
		}
	}
}

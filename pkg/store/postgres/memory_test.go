package postgres

import "testing"

// TestANewMemoryBeginsAfterWhatMayHaveBeenServed meets a server that remembers nothing,
// and a row that was copied from one that had dropped counters at a later instant.
func TestANewMemoryBeginsAfterWhatMayHaveBeenServed(t *testing.T) {
	t.Parallel()
	s := newTimelineStore(t)
	for _, c := range []struct {
		loss, now string
		since     int64
	}{
		{"DELETE FROM weir.memory", "1000", 1001},
		{"UPDATE weir.memory SET latest = 5000", "2000", 5001},
	} {
		for _, sql := range []string{c.loss, "SELECT set_config('weir.now', '" + c.now + "', false)"} {
			if _, err := s.conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		var done bool
		if err := s.conn.QueryRow(t.Context(), s.program.refresh, 10).Scan(&done); err != nil {
			t.Fatal(err)
		}
		var since int64
		if err := s.conn.QueryRow(t.Context(), "SELECT since FROM weir.memory").Scan(&since); err != nil {
			t.Fatal(err)
		}
		if since != c.since {
			t.Errorf("after %q at %s the memory begins at %d, want %d", c.loss, c.now, since, c.since)
		}
	}
}

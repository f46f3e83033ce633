-- The decision of step for a take that one open window can grant as a whole, in a
-- statement that calls no function. No row when step, or steady, has to decide.
--
-- A transaction that has to wait for the counter judges the row that it finds then,
-- by the clock of then. Anything else that wrote the row, by hand or from a dump, is
-- not its writer. The memory is not read: it says what is known of counters that are
-- gone, and this one is there.

UPDATE weir.counters$kind c SET used = ARRAY[c.used[1] + $3], writer = pg_current_xact_id()::xid
WHERE c.key = $1 AND c.terms = $2 AND c.used[1] <= $4
    AND weir.instant$build() >= c.starts AND weir.instant$build() >= $5 AND weir.instant$build() < c.ends
    AND c.server = pg_postmaster_start_time() AND c.writer = c.xmin
RETURNING c.used[1], c.ends, weir.instant$build()

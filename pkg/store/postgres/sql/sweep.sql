-- sweep drops at most the given number of counters that ended before now, and notes that it
-- may: nothing is decided any more for an earlier instant, which a clock that is set
-- back would show. A plan that was made while there were few counters would go on to read all of
-- them, and those that were dropped. One that has to read a table of one row is then thought to be
-- dear enough to be compiled, each time.
CREATE OR REPLACE FUNCTION weir.sweep$kind$build(now bigint, most bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    apart CONSTANT bigint := 100000; -- microseconds between two notes, the shortest window
    ended bigint;
BEGIN
    UPDATE weir.memory$kind m SET latest = now, writer = pg_current_xact_id()::xid WHERE m.latest <= now - apart;
    SELECT m.latest INTO ended FROM weir.memory$kind m;
    DELETE FROM weir.counters$kind WHERE ctid = ANY (ARRAY(
        SELECT c.ctid FROM weir.counters$kind c WHERE c.keep_until <= ended
        ORDER BY c.keep_until LIMIT most FOR UPDATE SKIP LOCKED));
END
$$;

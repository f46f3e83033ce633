-- recall returns limiter.Memory. Whoever finds no row, one of a server that has
-- ended, or a copy, begins the memory anew: grants that were made before may be lost.
CREATE OR REPLACE FUNCTION weir.recall$build(now bigint, OUT since bigint, OUT latest bigint)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
BEGIN
    LOOP
        SELECT m.since, m.latest INTO since, latest FROM weir.memory m
        WHERE m.server = pg_postmaster_start_time() AND m.writer = m.xmin;
        EXIT WHEN FOUND;
        -- One later, because what is lost may have been granted at this very instant.
        INSERT INTO weir.memory AS m (server, writer, since, latest)
        VALUES (pg_postmaster_start_time(), pg_current_xact_id()::xid, now + 1, 0)
        ON CONFLICT (one) DO UPDATE
        SET server = excluded.server, writer = excluded.writer, since = greatest(excluded.since, m.latest + 1)
        WHERE m.server <> excluded.server OR m.writer <> m.xmin
        RETURNING m.since, m.latest INTO since, latest;
        EXIT WHEN FOUND; -- otherwise somebody else was faster
    END LOOP;
END
$$;

-- sweep drops at most so many counters that ended before now, and notes that it
-- may: nothing is decided any more for an earlier instant, which a clock that is set
-- back would show.
CREATE OR REPLACE FUNCTION weir.sweep$build(now bigint, most bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    apart CONSTANT bigint := 100000; -- microseconds between two notes, the shortest window
    ended bigint;
BEGIN
    UPDATE weir.memory m SET latest = now, writer = pg_current_xact_id()::xid WHERE m.latest <= now - apart;
    SELECT m.latest INTO ended FROM weir.memory m;
    DELETE FROM weir.counters WHERE key IN (
        SELECT c.key FROM weir.counters c WHERE c.keep_until <= ended
        ORDER BY c.keep_until LIMIT most FOR UPDATE SKIP LOCKED);
END
$$;

-- refresh begins the memory if the server is new, and drops counters that ended.
CREATE OR REPLACE FUNCTION weir.refresh$build(most bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    now CONSTANT bigint := weir.clock$build();
BEGIN
    PERFORM weir.recall$build(now);
    PERFORM weir.sweep$build(now, most);
    RETURN true;
END
$$;

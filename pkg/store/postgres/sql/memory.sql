-- The two of limiter.Memory: what is known of durable counters, and of the others. The
-- clock is leased ahead in a logged row: it outlives what the other memory loses, and says
-- up to when windows may have been served by a clock that is now set back. Rows are locked
-- in this order: counters, memory_durable, memory.

-- lineage names the history of the server's data: a promotion or a recovery to a point
-- in time begins another, and so does another server.
CREATE OR REPLACE FUNCTION weir.lineage$build() RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT (SELECT system_identifier FROM pg_control_system()) || ' ' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
$$;

-- name returns the name of a new memory.
CREATE OR REPLACE FUNCTION weir.name$build() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT 1 + (hashtextextended(gen_random_uuid()::text, 0) & 9007199254740990)
$$;

-- begin begins the memory of counters that are not durable: grants that were made before,
-- up to the end of the lease, may be lost. A row that a build without leases began is
-- named, and then the same holds for it. One that is good only learns the lease.
CREATE OR REPLACE FUNCTION weir.begin$build(now bigint, served bigint, anew boolean, leased bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
BEGIN
    -- One later, because what is lost may have been granted at this very instant.
    INSERT INTO weir.memory AS m (server, writer, since, latest, id, named, leased)
    VALUES (pg_postmaster_start_time(), pg_current_xact_id()::xid, greatest(now, served) + 1, 0,
        weir.name$build(), greatest(now, served) + 1, leased)
    ON CONFLICT (one) DO UPDATE SET (server, writer, leased, since, id, named) = (
        SELECT excluded.server, excluded.writer, excluded.leased, n.since,
            CASE WHEN lost OR m.named <> m.since THEN excluded.id ELSE m.id END, n.since
        FROM (SELECT anew OR m.server <> excluded.server OR m.writer <> m.xmin) l (lost), LATERAL (SELECT CASE
            WHEN lost THEN greatest(excluded.since, m.latest + 1)
            WHEN m.named <> m.since THEN greatest(m.since, served + 1)
            ELSE m.since END) n (since));
END
$$;

-- attend waits for the row of the durable memory, leases the clock ahead, and begins the
-- durable memory when it may lack grants. After that, and after a restart, so does the other.
CREATE OR REPLACE FUNCTION weir.attend$build(now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    ahead CONSTANT bigint := 1000000; -- microseconds
    place text;
    m record;
    lost boolean;
BEGIN
    INSERT INTO weir.memory_durable (server, writer, lineage, counters, id, since, latest, leased)
    VALUES (pg_postmaster_start_time(), pg_current_xact_id()::xid, '', 0, 0, 0, 0, 0)
    ON CONFLICT DO NOTHING;
    SELECT d.*, d.writer = d.xmin AS own, d.server = pg_postmaster_start_time() AS same INTO m
    FROM weir.memory_durable d FOR UPDATE;
    place := weir.lineage$build();
    lost := m.lineage <> place OR m.counters <> 'weir.counters_durable'::regclass::oid OR NOT m.own;
    UPDATE weir.memory_durable d
    SET server = pg_postmaster_start_time(), writer = pg_current_xact_id()::xid, lineage = place,
        counters = 'weir.counters_durable'::regclass,
        id = CASE WHEN lost THEN weir.name$build() ELSE d.id END,
        since = CASE WHEN lost THEN greatest(now, d.leased, d.latest) + 1 ELSE d.since END,
        leased = greatest(d.leased, now + ahead);
    IF lost OR NOT m.same THEN
        PERFORM weir.begin$build(now, m.leased, true, greatest(m.leased, now + ahead));
    END IF;
END
$$;

-- spare reports whether a lease that ends soon is being renewed by another.
CREATE OR REPLACE FUNCTION weir.spare$build(now bigint, leased bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF now >= leased THEN
        RETURN false;
    END IF;
    PERFORM FROM weir.memory_durable FOR UPDATE SKIP LOCKED;
    RETURN NOT FOUND;
END
$$;

-- recall_durable returns what is remembered of durable counters. It goes on after a
-- restart of the server that wrote it.
CREATE OR REPLACE FUNCTION weir.recall_durable$build(
    now bigint, OUT since bigint, OUT latest bigint, OUT id bigint, OUT leased bigint)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    renew CONSTANT bigint := 500000; -- microseconds before the lease ends
BEGIN
    SELECT m.since, m.latest, m.id, m.leased INTO since, latest, id, leased FROM weir.memory_durable m
    WHERE m.server = pg_postmaster_start_time() AND m.writer = m.xmin
        AND m.counters = 'weir.counters_durable'::regclass::oid;
    IF FOUND AND (now < leased - renew OR weir.spare$build(now, leased)) THEN
        RETURN;
    END IF;
    PERFORM weir.attend$build(now);
    SELECT m.since, m.latest, m.id, m.leased INTO since, latest, id, leased FROM weir.memory_durable m;
END
$$;

-- recall returns what is remembered of the other counters, which nothing outlives.
CREATE OR REPLACE FUNCTION weir.recall$build(
    now bigint, OUT since bigint, OUT latest bigint, OUT id bigint, OUT leased bigint)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    renew CONSTANT bigint := 500000; -- microseconds before the lease ends
    served bigint;
BEGIN
    SELECT m.since, m.latest, m.id, m.leased INTO since, latest, id, leased FROM weir.memory m
    WHERE m.server = pg_postmaster_start_time() AND m.writer = m.xmin AND m.named = m.since;
    IF FOUND AND (now < leased - renew OR weir.spare$build(now, leased)) THEN
        RETURN;
    END IF;
    served := coalesce((SELECT d.leased FROM weir.memory_durable d), 0);
    PERFORM weir.recall_durable$build(now);
    SELECT d.leased INTO leased FROM weir.memory_durable d FOR UPDATE;
    PERFORM weir.begin$build(now, served, false, leased);
    SELECT m.since, m.latest, m.id INTO since, latest, id FROM weir.memory m;
END
$$;

-- before returns since when all is known that a counter that is not durable may have
-- granted under a key that has none which is: from the beginning when its limit had only
-- durable ones, or up to when they took over. A take lets them take over.
CREATE OR REPLACE FUNCTION weir.before$build(counter text, moves boolean, takes boolean, now bigint, born bigint[])
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    ended bigint;
    memory record;
BEGIN
    SELECT v.until INTO ended FROM weir.volatile v WHERE v.scope = weir.scope(counter);
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    memory := weir.recall$build(now);
    IF takes AND ended IS NULL THEN
        UPDATE weir.volatile v SET until = now WHERE v.scope = weir.scope(counter) AND v.until IS NULL;
    END IF;
    IF memory.id = ANY (born) THEN
        RETURN 0;
    ELSIF moves OR ended IS NULL THEN
        RETURN memory.since;
    END IF;
    RETURN least(memory.since, ended + 1);
END
$$;

-- refresh begins the memories that may lack grants, drops counters that ended, and
-- returns the server's time and the names of the memories.
CREATE OR REPLACE FUNCTION weir.refresh$build(most bigint) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    now CONSTANT bigint := weir.clock$build();
    kept record;
    other record;
BEGIN
    other := weir.recall$build(now);
    kept := weir.recall_durable$build(now);
    PERFORM weir.sweep_durable$build(now, most);
    PERFORM weir.sweep$build(now, most);
    RETURN ARRAY[now, other.id, kept.id];
END
$$;

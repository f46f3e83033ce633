-- The additions to schema.sql for durable counters. Builds that know only of the
-- others go on with schema.sql. These tables are logged: a crash of the server, or
-- its restart, loses nothing that it answered.

CREATE TABLE IF NOT EXISTS weir.counters_durable (
    LIKE weir.counters INCLUDING DEFAULTS INCLUDING INDEXES,
    since bigint NOT NULL DEFAULT 0 -- from when on all grants are known, whatever the memory says
) WITH (fillfactor = 50);

-- The server's memory for durable counters, in one row, and the lease of its clock.
CREATE TABLE IF NOT EXISTS weir.memory_durable (
    one      boolean     PRIMARY KEY DEFAULT true CHECK (one),
    server   timestamptz NOT NULL, -- the start of the server that last wrote the row
    writer   xid         NOT NULL, -- the transaction that wrote the row: a copy has another
    lineage  text        NOT NULL, -- the server's history, see lineage
    counters oid         NOT NULL, -- the table it is about: one that was made again has another
    id       bigint      NOT NULL, -- names the memory
    since    bigint      NOT NULL, -- the instant the memory began
    latest   bigint      NOT NULL, -- no counter is dropped that ended later
    leased   bigint      NOT NULL  -- no window that begins later was served
) WITH (fillfactor = 10);

-- Which limits had counters that are not durable, one row each: those may be lost.
CREATE TABLE IF NOT EXISTS weir.volatile (
    scope text COLLATE "C" PRIMARY KEY,
    until bigint -- when a durable counter took over; NULL as long as none did
);

-- When users last set a limit (by its scope) or one counter (by its key) back. Grants
-- that the memories had forgotten by then count no more.
CREATE TABLE IF NOT EXISTS weir.resets (
    name text COLLATE "C" PRIMARY KEY,
    at   bigint NOT NULL
);

CREATE OR REPLACE FUNCTION weir.scope(key text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT left(key, -position('/' IN reverse(key)))
$$;

-- enter notes that a limit has counters that are not durable, before the first can grant,
-- and lets one that was durable go on with its count: no key has a counter in both tables.
-- Every transaction that makes a counter takes the lock.
CREATE OR REPLACE FUNCTION weir.enter() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    c weir.counters_durable;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(NEW.key, 0));
    PERFORM FROM weir.volatile v WHERE v.scope = weir.scope(NEW.key) AND v.until IS NULL;
    IF NOT FOUND THEN
        PERFORM set_config('synchronous_commit', 'on', true);
        INSERT INTO weir.volatile (scope) VALUES (weir.scope(NEW.key)) ON CONFLICT (scope) DO UPDATE SET until = NULL;
    END IF;
    DELETE FROM weir.counters_durable d WHERE d.key = NEW.key RETURNING d.* INTO c;
    IF NOT FOUND THEN
        RETURN NEW;
    END IF;
    PERFORM set_config('synchronous_commit', 'on', true);
    INSERT INTO weir.counters VALUES (
        c.key, c.keep_until, c.generation, c.algorithm, c.expires, c.began, c.pulse, c.asked, c.before,
        c.rates, c.index, c.used, c.entries, c.log, c.tenants, c.shares);
    RETURN NULL; -- the caller finds the row when it looks again
END
$$;

-- forget_durable ends both memories with the counters that TRUNCATE takes away.
CREATE OR REPLACE FUNCTION weir.forget_durable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE weir.memory_durable SET server = '-infinity', lineage = '';
    DELETE FROM weir.memory;
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER forget_durable BEFORE TRUNCATE ON weir.counters_durable
FOR EACH STATEMENT EXECUTE FUNCTION weir.forget_durable();

CREATE OR REPLACE TRIGGER enter BEFORE INSERT ON weir.counters
FOR EACH ROW EXECUTE FUNCTION weir.enter();

-- The first time, what the other memory knows holds for durable counters too: there were
-- none.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'weir.memory'::regclass AND attname = 'leased') THEN
        RETURN;
    END IF;
    ALTER TABLE weir.memory
        ADD COLUMN id     bigint NOT NULL DEFAULT 0, -- names the memory
        ADD COLUMN named  bigint NOT NULL DEFAULT 0, -- the since of the memory that id names
        ADD COLUMN leased bigint NOT NULL DEFAULT 0; -- as in memory_durable, or less
    UPDATE weir.memory m SET id = 1 + (hashtextextended(gen_random_uuid()::text, 0) & 9007199254740990),
        named = m.since, writer = pg_current_xact_id()::xid
    WHERE m.server = pg_postmaster_start_time() AND m.writer = m.xmin;
    INSERT INTO weir.memory_durable (server, writer, lineage, counters, id, since, latest, leased)
    SELECT m.server, m.writer,
        (SELECT system_identifier FROM pg_control_system()) || ' ' || left(pg_walfile_name(pg_current_wal_lsn()), 8),
        'weir.counters_durable'::regclass, 1 + (hashtextextended(gen_random_uuid()::text, 0) & 9007199254740990),
        m.since, m.latest, 0
    FROM weir.memory m WHERE m.named > 0
    ON CONFLICT DO NOTHING;
    INSERT INTO weir.volatile (scope) SELECT DISTINCT weir.scope(c.key) FROM weir.counters c ON CONFLICT DO NOTHING;
END
$$;

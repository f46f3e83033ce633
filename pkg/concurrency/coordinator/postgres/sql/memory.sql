-- State, and how it is kept.

-- begin is Begin, with a term above all before.
CREATE OR REPLACE FUNCTION weir.begin$build(name text, now bigint, above bigint, quarantine bigint) RETURNS weir.pools
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    s weir.pools;
BEGIN
    DELETE FROM weir.holders h WHERE h.pool = name;
    DELETE FROM weir.pools o WHERE o.key = name;
    INSERT INTO weir.pools AS o VALUES (
        name, pg_postmaster_start_time(), pg_current_xact_id()::xid, greatest(now, above + 1), 0, '{}',
        now, now + quarantine, quarantine, now, 0, 0, 0, 0, 0, 0, 0, 0)
    RETURNING * INTO s;
    PERFORM weir.sweep$build(now);
    RETURN s;
END
$$;

-- sweep drops pools that nobody asked for since every share of them expired.
CREATE OR REPLACE FUNCTION weir.sweep$build(now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    ended CONSTANT bigint := now - 3600000000; -- MaxTTL
    name text;
BEGIN
    FOR name IN SELECT o.key FROM weir.pools o WHERE o.now < ended LIMIT 100 LOOP
        CONTINUE WHEN NOT pg_try_advisory_xact_lock(hashtext('weir.pools'), hashtext(name));
        DELETE FROM weir.pools o WHERE o.key = name AND o.now < ended;
        DELETE FROM weir.holders h WHERE h.pool = name AND NOT EXISTS (SELECT FROM weir.pools o WHERE o.key = name);
    END LOOP;
END
$$;

-- recall returns the memory. One begins for a command that finds none, that of
-- another start of the server, or a copy: what it lacks may be in use.
CREATE OR REPLACE FUNCTION weir.recall$build(name text, now bigint, above bigint, quarantine bigint) RETURNS weir.pools
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    s weir.pools;
BEGIN
    SELECT * INTO s FROM weir.pools o
    WHERE o.key = name AND o.server = pg_postmaster_start_time() AND o.writer = o.xmin;
    IF FOUND THEN
        RETURN s;
    END IF;
    SELECT * INTO s FROM weir.pools o WHERE o.key = name;
    RETURN weir.begin$build(name, now, greatest(above, s.term), greatest(quarantine, s.params[8]));
END
$$;

CREATE OR REPLACE FUNCTION weir.keep$build(s weir.pools) RETURNS void
LANGUAGE sql VOLATILE AS $$
    UPDATE weir.pools o SET
        writer = pg_current_xact_id()::xid, generation = s.generation, params = s.params, now = s.now, until = s.until,
        waited = s.waited, next = s.next, holders = s.holders, opinion = s.opinion, fleet = s.fleet,
        reserved = s.reserved, granted = s.granted, in_flight = s.in_flight, modest = s.modest, bound = s.bound
    WHERE o.key = s.key
$$;

-- The decision of step for a take when only the count of a counter with one rate can
-- change: no edit, no new window, no loss, no tenants. NULL when step has to decide.
-- A take that a window can grant as a whole may have been granted by count.sql
-- before.
--
-- PL/pgSQL prepares every expression again in every transaction, which makes step
-- cost several times its statements; here are few expressions. The memory is read by
-- the statement that locks the counter, and may be as old as the wait for the lock:
-- it says what is known of counters that are gone, and this one is there.

CREATE OR REPLACE FUNCTION weir.steady_window$kind$build(
    counter text, min bigint, want bigint, first boolean, generation bigint, rates bigint[], since bigint,
    floor bigint, born bigint[], resume boolean)
RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    max_window CONSTANT bigint := 2678400000000;
    s record;
    now bigint;
    units bigint := 0;
BEGIN
    SELECT c.index[1] AS index, c.used[1] AS used, greatest(0, rates[1] - c.used[1]) AS room,
        c.asked + first::int AS asked, c.before, greatest(m.latest, c.began, floor) AS latest,
        weir.start$build(rates, 1, c.index[1]) AS starts, weir.start$build(rates, 1, c.index[1] + 1) AS ends INTO s
    FROM weir.counters$kind c, weir.memory$kind m
    WHERE c.key = counter AND c.generation = generation AND c.algorithm = 0 AND c.rates = rates
        AND c.tenants = '{}' AND min <= rates[1]
        AND m.server = pg_postmaster_start_time() AND m.writer = m.xmin AND $valid
        AND greatest(since, CASE WHEN resume THEN 0 WHEN m.id = ANY (born) THEN $since ELSE greatest(m.since, $since) END)
            <= weir.start$build(rates, 1, c.index[1])
    FOR UPDATE OF c;
    now := weir.clock$build();
    IF (now >= s.starts AND now < s.ends AND now >= s.latest) IS NOT TRUE THEN
        RETURN NULL;
    END IF;
    IF s.room >= min THEN
        units := greatest(min, least(want, weir.ceil_div$build(s.room, greatest(0, s.before - s.asked) + 1)));
    END IF;
    IF units > 0 OR first THEN
        UPDATE weir.counters$kind c SET used = ARRAY[s.used + units], asked = s.asked,
            terms = CASE WHEN s.asked >= s.before THEN weir.terms$build(generation, since, rates, born, resume) END,
            starts = weir.at$build(now), ends = weir.at$build(s.ends),
            server = pg_postmaster_start_time(), writer = pg_current_xact_id()::xid
        WHERE c.key = counter;
    END IF;
    RETURN ARRAY[(units = 0)::int, 0, units, s.room - units, rates[1], s.ends - now, least(max_window, s.ends - now),
        CASE WHEN units = 0 THEN s.ends - now ELSE 0 END, 0, now, 1] || rates || ARRAY[s.index, s.used + units];
END
$$;

CREATE OR REPLACE FUNCTION weir.steady_bucket$kind$build(
    counter text, min bigint, want bigint, generation bigint, algorithm bigint, rates bigint[],
    max_delay bigint, lifetime bigint, since bigint, floor bigint, born bigint[], resume boolean)
RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    cost CONSTANT bigint := weir.cost$build(rates, 1);
    drain CONSTANT bigint := weir.drain$build(rates, 1);
    brim CONSTANT bigint := weir.brim$build(algorithm, max_delay, cost, drain, rates, 1);
    lowest CONSTANT bigint := lifetime * drain;
    renew CONSTANT bigint := 500000; -- as in recall
    s record;
    now bigint;
    at bigint;
    level bigint;
    units bigint := 0;
    delay bigint := 0;
    wait bigint := 0;
BEGIN
    SELECT c.index[1] AS index, c.used[1] AS used, c.expires, c.keep_until, m.leased,
        greatest(since, CASE WHEN resume THEN 0 WHEN m.id = ANY (born) THEN $since ELSE greatest(m.since, $since) END) AS since,
        greatest(m.latest, c.began, floor) AS latest INTO s
    FROM weir.counters$kind c, weir.memory$kind m
    WHERE c.key = counter AND c.generation = generation AND c.algorithm = algorithm AND c.rates = rates
        AND min <= (brim - lowest) / cost
        AND m.server = pg_postmaster_start_time() AND m.writer = m.xmin AND $valid
    FOR UPDATE OF c;
    now := weir.clock$build();
    IF (now >= s.latest AND now < s.leased - renew) IS NOT TRUE THEN
        RETURN NULL;
    END IF;
    level := weir.drain_to$build(s.used, s.index, now, drain, lowest);
    at := greatest(s.index, now);
    IF s.since > 0 AND weir.drain_to$build(brim, s.since, now, drain, 0) >= level THEN
        level := weir.drain_to$build(brim, s.since, now, drain, 0);
        at := greatest(at, s.since);
    END IF;
    IF (brim - level) / cost >= min THEN
        units := least(want, (brim - level) / cost);
        level := level + units * cost;
        IF algorithm = 5 THEN
            delay := weir.ceil_div$build(greatest(0, level - cost), drain);
        END IF;
        s.expires := greatest(s.expires, now + lifetime + delay);
    ELSE
        wait := at - now + weir.ceil_div$build(level - brim + min * cost, drain);
    END IF;
    UPDATE weir.counters$kind c SET used = ARRAY[level], index = ARRAY[at], expires = s.expires, keep_until =
        weir.keep$build(s.keep_until, greatest(s.expires, at + weir.ceil_div$build(level, drain) + rates[2]), rates[2])
    WHERE c.key = counter;
    RETURN ARRAY[(units = 0)::int, algorithm, units, greatest(0, brim - level) / cost, (brim - lowest) / cost,
        CASE WHEN level > lowest THEN at - now + weir.ceil_div$build(level - lowest, drain) ELSE 0 END,
        lifetime, wait, delay, now, 1] || rates || ARRAY[weir.index$build(rates, 1, now), 0];
END
$$;

-- step decides for one counter by the server's clock. It is made twice, with meet.sql for
-- the counters and with meet_durable.sql for those that are durable.
CREATE OR REPLACE FUNCTION weir.step$kind$build(
    counter text, op bigint, min bigint, want bigint, tenant text, windows bigint[], granted_at bigint, first boolean,
    generation bigint, algorithm bigint, rates bigint[], either boolean, buckets bigint, max_delay bigint,
    lifetime bigint, tenants text[], weights bigint[], weight bigint, since bigint, floor bigint, born bigint[],
    resume boolean, reserve boolean, sweeps boolean DEFAULT true)
RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    peek CONSTANT bigint := 2;
    max_window CONSTANT bigint := 2678400000000;
    swept CONSTANT bigint := 8; -- counters dropped for a new one, so that they cannot pile up
    s weir.counters;
    is_new boolean := false;
    moves boolean := false; -- from the other table
    known bigint := 0;      -- since when what the other table held is known
    now bigint;
    memory record;
    d record;
BEGIN
    -- First the lock, then the clock: so a counter sees time in order.
$meet
    now := weir.clock$build();
    memory := weir.recall$kind$build(now);
    IF memory.latest > now THEN
        now := weir.clock$build(); -- a sweep noted a later instant meanwhile
    END IF;
    IF resume THEN
        known := 0;
    ELSIF memory.id <> ALL (born) THEN
        known := greatest(known, memory.since);
    END IF;
    IF known > 0 AND known > now - max_window AND weir.is_set_back$build(counter, known) THEN
        known := 0;
    END IF;
    d := weir.decide$build(
        s, (generation, algorithm, rates, either, buckets, max_delay, lifetime, tenants, weights, weight, reserve), now,
        (op, min, want, tenant, windows, granted_at, first), greatest(known, since), greatest(memory.latest, floor));
    IF moves OR d.s IS DISTINCT FROM s THEN
        s := weir.ease$build(d.s, now, known, since, born, resume);
        s.keep_until := weir.keep$build(s.keep_until, weir.keep_until$build(s),
            CASE WHEN s.algorithm = 0 THEN 0 ELSE s.rates[2] END);
        UPDATE weir.counters$kind c SET
            keep_until = s.keep_until, generation = s.generation, algorithm = s.algorithm, expires = s.expires,
            began = s.began, pulse = s.pulse, asked = s.asked, before = s.before, rates = s.rates, index = s.index,
            used = s.used, entries = s.entries, log = s.log, tenants = s.tenants, shares = s.shares,
            terms = s.terms, starts = s.starts, ends = s.ends, server = s.server, writer = s.writer
        WHERE c.key = counter;
    ELSIF is_new THEN -- there is nothing to keep
        DELETE FROM weir.counters$kind c WHERE c.key = counter;
    END IF;
    IF is_new AND sweeps THEN
        PERFORM weir.sweep$kind$build(now, swept);
    END IF;
    RETURN d.reply;
END
$$;

-- step.go and state.go.

-- served returns the newest instant known to have been served.
CREATE OR REPLACE FUNCTION weir.served$build(s weir.counters, latest bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    latest := greatest(latest, s.began);
    IF s.algorithm = 0 THEN
        FOR i IN 1 .. cardinality(s.index) LOOP
            latest := greatest(latest, weir.start$build(s.rates, i, s.index[i]));
        END LOOP;
    END IF;
    RETURN latest;
END
$$;

-- keep_until returns from when on Step needs s no more.
CREATE OR REPLACE FUNCTION weir.keep_until$build(s weir.counters) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    until bigint := s.expires;
    ends bigint;
BEGIN
    FOR i IN 1 .. cardinality(s.index) LOOP
        CASE weir.machine$build(s.algorithm)
        WHEN 0 THEN
            ends := weir.start$build(s.rates, i, s.index[i] + 1);
        WHEN 1 THEN
            ends := greatest(s.index[i], weir.log_ends$build(s, i, weir.log_starts$build(s, i)));
        ELSE
            ends := s.index[i] + weir.ceil_div$build(s.used[i], weir.drain$build(s.rates, i));
        END CASE;
        until := greatest(until, ends + s.rates[5 * i - 3]);
    END LOOP;
    RETURN until;
END
$$;

-- keep returns until when a counter is kept that Step needs until the given instant. It
-- is indexed, and a change makes an update leave the page: as long as what is stored
-- is enough and not too much, it stays.
CREATE OR REPLACE FUNCTION weir.keep$build(stored bigint, needed bigint, slack bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN stored BETWEEN needed AND needed + slack THEN stored ELSE needed + slack END
$$;

-- expected returns until when a counter is likely to be kept that begins now. One that is
-- inserted so is decided in its place. It would else leave a dead entry in each index, and
-- a sweep would pass all of those on its way to counters that ended.
CREATE OR REPLACE FUNCTION weir.expected$build(algorithm bigint, rates bigint[], lifetime bigint, now bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    until bigint := now;
    span bigint;
BEGIN
    FOR i IN 1 .. cardinality(rates) / 5 LOOP
        span := rates[5 * i - 3];
        until := greatest(until, CASE weir.machine$build(algorithm)
            WHEN 0 THEN weir.start$build(rates, i, weir.index$build(rates, i, now) + 1) + span
            WHEN 1 THEN now + lifetime + 3 * span
            ELSE now + 2 * span
            END);
    END LOOP;
    RETURN until;
END
$$;

-- reset forgets what was granted.
CREATE OR REPLACE FUNCTION weir.reset$build(
    INOUT s weir.counters, p weir.params$build, now bigint, tenant text, since bigint, OUT reply bigint[])
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    granted CONSTANT bigint := 0;
    n CONSTANT int := cardinality(s.index);
BEGIN
    s.tenants := '{}';
    s.shares := '{}';
    s.used := array_fill(0::bigint, ARRAY[n]);
    s.entries := s.used;
    s.log := '{}';
    IF s.algorithm <> 0 THEN
        s.index := array_fill(now, ARRAY[n]);
    END IF;
    IF NOT weir.waits$build(s, p) THEN
        s := weir.advance$build(s, p, now, since);
    END IF;
    reply := weir.describe$build(s, p, now, tenant, since, granted);
END
$$;

-- decide is Params.Step: names follow the Go; change both or neither. The numbers of
-- algorithms, operations and reasons are those of the Go.
CREATE OR REPLACE FUNCTION weir.decide$build(
    INOUT s weir.counters, p weir.params$build, now bigint, c weir.command$build, since bigint, latest bigint,
    OUT reply bigint[])
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    stale_generation CONSTANT bigint := 3;
    clock_behind CONSTANT bigint := 4;
    newest CONSTANT bigint := weir.served$build(s, latest);
    adopted weir.counters;
    d record;
BEGIN
    IF p.generation < s.generation THEN
        reply := weir.reply$build(s, now, stale_generation);
        RETURN;
    ELSIF now < newest THEN
        reply := weir.reply$build(s, now, clock_behind, retry_after => newest - now);
        RETURN;
    END IF;
    adopted := weir.adopt$build(s, p, now, since);
    CASE c.op
    WHEN 0 THEN
        d := weir.take$build(adopted, p, now, c, since);
        s := d.s;
    WHEN 1 THEN
        d := weir.give_back$build(adopted, p, now, c, since);
        s := d.s;
    WHEN 2 THEN
        d := weir.take$build(adopted, p, now, c, since);
    ELSE
        d := weir.reset$build(adopted, p, now, c.tenant, since);
        s := d.s;
    END CASE;
    reply := d.reply;
END
$$;

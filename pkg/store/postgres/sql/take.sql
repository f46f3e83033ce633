-- take.go.

-- too_large reports whether the least that is asked for is never granted.
CREATE OR REPLACE FUNCTION weir.too_large$build(p weir.params$build, c weir.command$build) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    n CONSTANT int := cardinality(p.rates) / 5;
    large int := 0;
    most bigint;
    cost bigint;
    drain bigint;
BEGIN
    FOR i IN 1 .. n LOOP
        most := p.rates[5 * i - 4];
        IF p.algorithm > 2 THEN
            cost := weir.cost$build(p.rates, i);
            drain := weir.drain$build(p.rates, i);
            most := (weir.brim$build(p.algorithm, p.max_delay, cost, drain, p.rates, i) - p.lifetime * drain) / cost;
        END IF;
        large := large + (c.min > most)::int;
    END LOOP;
    IF p.weight > 0 AND weir.never_fits$build(p, c.tenant, c.min) THEN
        RETURN true;
    END IF;
    RETURN large = n OR large > 0 AND NOT p.either;
END
$$;

-- either reports whether one meter that admits is enough.
CREATE OR REPLACE FUNCTION weir.either$build(s weir.counters, p weir.params$build) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT p.either AND s.rates = p.rates AND weir.machine$build(s.algorithm) = weir.machine$build(p.algorithm)
$$;

-- read returns what the meters say to a take of the units: the least of all, the most
-- of any. The outputs most and room are limit and left of Go's reading, which are
-- words of SQL.
CREATE OR REPLACE FUNCTION weir.read$build(
    s weir.counters, p weir.params$build, now bigint, units bigint, tenant text, since bigint,
    OUT most bigint, OUT room bigint, OUT wait bigint, OUT resets bigint, OUT forgotten boolean)
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    max_exact CONSTANT bigint := 9007199254740991;
    amount CONSTANT bigint := least(units, max_exact); -- no larger one ever fits
    machine CONSTANT int := weir.machine$build(s.algorithm);
    either CONSTANT boolean := weir.either$build(s, p);
    m record;
BEGIN
    IF weir.waits$build(s, p) THEN
        most := p.rates[1];
        room := 0;
        wait := s.expires - now + 1;
        resets := wait;
        forgotten := false;
        RETURN;
    END IF;
    FOR i IN 1 .. cardinality(s.index) LOOP
        CASE machine
        WHEN 0 THEN
            m := weir.read_window$build(s, p, i, now, amount, tenant, since);
        WHEN 1 THEN
            m := weir.read_sliding$build(s, p, i, now, amount, since);
        ELSE
            m := weir.read_bucket$build(s, p, i, now, amount);
        END CASE;
        IF either AND amount > m.most THEN
            m.wait := max_exact; -- it is for another meter
        END IF;
        IF i = 1 OR either AND (m.room > room OR m.room = room AND m.resets < resets)
            OR NOT either AND (m.room < room OR m.room = room AND m.resets > resets) THEN
            most := m.most;
            room := m.room;
            resets := m.resets;
        END IF;
        IF i = 1 THEN
            wait := m.wait;
            forgotten := m.forgotten;
        ELSIF either THEN
            wait := least(wait, m.wait);
            forgotten := forgotten AND m.forgotten;
        ELSE
            wait := greatest(wait, m.wait);
            forgotten := forgotten OR m.forgotten;
        END IF;
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION weir.read_window$build(
    s weir.counters, p weir.params$build, i int, now bigint, amount bigint, tenant text, since bigint,
    OUT most bigint, OUT room bigint, OUT wait bigint, OUT resets bigint, OUT forgotten boolean)
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    own record;
BEGIN
    most := s.rates[5 * i - 4];
    room := greatest(0, most - s.used[i]);
    resets := weir.start$build(s.rates, i, s.index[i] + 1) - now;
    IF weir.fair$build(s, p) THEN
        own := weir.share$build(s, p, tenant, amount);
        room := own.room;
        most := own.used + own.room;
    END IF;
    forgotten := weir.start$build(s.rates, i, s.index[i]) < since;
    IF forgotten THEN
        room := 0;
    END IF;
    wait := CASE WHEN room < amount THEN resets ELSE 0 END;
END
$$;

CREATE OR REPLACE FUNCTION weir.read_sliding$build(
    s weir.counters, p weir.params$build, i int, now bigint, amount bigint, since bigint,
    OUT most bigint, OUT room bigint, OUT wait bigint, OUT resets bigint, OUT forgotten boolean)
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    ends CONSTANT bigint := weir.spent_by$build(p, s.rates, i, since + p.lifetime) + s.rates[5 * i - 3] - now;
BEGIN
    most := s.rates[5 * i - 4];
    room := greatest(0, most - s.used[i]);
    wait := weir.sliding_wait$build(s, i, now, amount);
    resets := greatest(0, weir.log_ends$build(s, i, weir.log_starts$build(s, i)) - now);
    forgotten := since > 0 AND ends > 0;
    IF forgotten THEN
        room := 0;
        wait := greatest(wait, ends);
        resets := greatest(resets, ends);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION weir.read_bucket$build(
    s weir.counters, p weir.params$build, i int, now bigint, amount bigint,
    OUT most bigint, OUT room bigint, OUT wait bigint, OUT resets bigint, OUT forgotten boolean)
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    cost CONSTANT bigint := weir.cost$build(s.rates, i);
    drain CONSTANT bigint := weir.drain$build(s.rates, i);
    brim CONSTANT bigint := weir.brim$build(p.algorithm, p.max_delay, cost, drain, s.rates, i);
    lowest CONSTANT bigint := p.lifetime * drain;
    ahead CONSTANT bigint := s.index[i] - now;
BEGIN
    most := (brim - lowest) / cost;
    room := greatest(0, brim - s.used[i]) / cost;
    wait := 0;
    resets := 0;
    forgotten := false;
    IF s.used[i] > lowest THEN
        resets := ahead + weir.ceil_div$build(s.used[i] - lowest, drain);
    END IF;
    IF room < amount AND amount <= most THEN
        wait := ahead + weir.ceil_div$build(s.used[i] - brim + amount * cost, drain);
    END IF;
END
$$;

-- charge counts a grant, and returns how long it has to wait for its turn.
CREATE OR REPLACE FUNCTION weir.charge$build(
    INOUT s weir.counters, p weir.params$build, now bigint, amount bigint, OUT delay bigint)
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    max_exact CONSTANT bigint := 9007199254740991;
    machine CONSTANT int := weir.machine$build(s.algorithm);
BEGIN
    delay := 0;
    FOR i IN 1 .. cardinality(s.index) LOOP
        CASE machine
        WHEN 0 THEN
            s.used[i] := s.used[i] + least(amount, max_exact - s.used[i]);
        WHEN 1 THEN
            s := weir.note$build(s, i, weir.spent_by$build(p, s.rates, i, now + p.lifetime), amount);
        ELSE
            s.used[i] := weir.fill$build(s.used[i], weir.cost$build(s.rates, i), amount);
            IF s.algorithm = 5 THEN
                delay := greatest(delay, weir.delay$build(s, i));
            END IF;
        END CASE;
    END LOOP;
    IF machine <> 0 THEN
        s.expires := greatest(s.expires, now + p.lifetime + delay);
    END IF;
END
$$;

-- fair_part returns what one holder is granted of what is left.
CREATE OR REPLACE FUNCTION weir.fair_part$build(s weir.counters, room bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT weir.ceil_div$build(room, greatest(0, s.before - s.asked) + 1) $$;

-- take grants what the meters have left.
CREATE OR REPLACE FUNCTION weir.take$build(
    INOUT s weir.counters, p weir.params$build, now bigint, c weir.command$build, since bigint, OUT reply bigint[])
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    granted CONSTANT bigint := 0;
    exhausted CONSTANT bigint := 1;
    too_large CONSTANT bigint := 2;
    amnesia CONSTANT bigint := 5;
    old weir.counters;
    reason bigint := granted;
    units bigint := 0;
    wait bigint := 0;
    delay bigint := 0;
    r record;
    charged record;
BEGIN
    old := s;
    IF c.first AND s.algorithm = 0 THEN
        s.asked := s.asked + 1;
    END IF;
    r := weir.read$build(s, p, now, c.min, c.tenant, since);
    IF weir.too_large$build(p, c) THEN
        reason := too_large;
    ELSIF r.room < c.min THEN
        reason := CASE WHEN r.forgotten THEN amnesia ELSE exhausted END;
        wait := r.wait;
    ELSE
        units := greatest(c.min, least(c.want, weir.fair_part$build(s, r.room)));
        charged := weir.charge$build(s, p, now, units);
        s := charged.s;
        delay := charged.delay;
    END IF;
    IF reason <> too_large AND weir.fair$build(s, p) THEN
        s := weir.grant$build(s, weir.account$build(s, p, c.tenant), units);
    END IF;
    IF c.op = 2 THEN
        s := old; -- a forecast is of what is there now
    END IF;
    reply := weir.describe$build(s, p, now, c.tenant, since, reason, units, wait, delay);
END
$$;

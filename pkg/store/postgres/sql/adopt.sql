-- adopt.go.

-- follows reports whether the parameters go on with the meters of the state.
CREATE OR REPLACE FUNCTION weir.follows$build(s weir.counters, p weir.params$build) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    j int;
BEGIN
    IF s.algorithm <> 5 AND p.algorithm <> 5 THEN
        RETURN weir.machine$build(s.algorithm) = weir.machine$build(p.algorithm);
    ELSIF s.algorithm <> p.algorithm OR cardinality(s.rates) <> cardinality(p.rates) THEN
        RETURN false;
    END IF;
    FOR i IN 1 .. cardinality(s.index) LOOP
        j := weir.find$build(s, p.rates, i);
        IF j = 0 OR s.rates[5 * j - 4] <> p.rates[5 * i - 4] THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END
$$;

-- waits reports whether nothing is granted until the grants of meters that the
-- parameters cannot go on with have expired.
CREATE OR REPLACE FUNCTION weir.waits$build(s weir.counters, p weir.params$build) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT s.algorithm <> 0 AND (s.algorithm <> p.algorithm OR s.rates <> p.rates) AND NOT weir.follows$build(s, p)
$$;

-- in_use returns how many units of meter number i count at now.
CREATE OR REPLACE FUNCTION weir.in_use$build(s weir.counters, i int, now bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    CASE weir.machine$build(s.algorithm)
    WHEN 1 THEN
        s := weir.alive$build(s, i, now);
        RETURN s.used[i];
    WHEN 2 THEN
        RETURN weir.ceil_div$build(
            weir.drain_to$build(s.used[i], s.index[i], now, weir.drain$build(s.rates, i), 0),
            weir.cost$build(s.rates, i));
    ELSE
        RETURN s.used[i];
    END CASE;
END
$$;

CREATE OR REPLACE FUNCTION weir.most_in_use$build(s weir.counters, now bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    units bigint := 0;
BEGIN
    FOR i IN 1 .. cardinality(s.index) LOOP
        units := greatest(units, weir.in_use$build(s, i, now));
    END LOOP;
    RETURN units;
END
$$;

-- without_meters returns s with no meter.
CREATE OR REPLACE FUNCTION weir.without_meters$build(s weir.counters) RETURNS weir.counters
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    s.rates := '{}';
    s.index := '{}';
    s.used := '{}';
    s.entries := '{}';
    s.log := '{}';
    RETURN s;
END
$$;

-- add adds a meter without a log.
CREATE OR REPLACE FUNCTION weir.add$build(s weir.counters, rate bigint[], index bigint, used bigint) RETURNS weir.counters
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    s.rates := s.rates || rate;
    s.index := s.index || index;
    s.used := s.used || used;
    s.entries := s.entries || 0::bigint;
    RETURN s;
END
$$;

-- meter adds a new meter for rate number i of the parameters, with used units in use
-- that may be spent up to the instant expires.
CREATE OR REPLACE FUNCTION weir.meter$build(s weir.counters, p weir.params$build, i int, expires bigint, used bigint)
RETURNS weir.counters LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    rate CONSTANT bigint[] := p.rates[5 * i - 4 : 5 * i];
BEGIN
    CASE weir.machine$build(p.algorithm)
    WHEN 0 THEN
        RETURN weir.add$build(s, rate, weir.index$build(p.rates, i, expires), used);
    WHEN 1 THEN
        s := weir.add$build(s, rate, expires, 0);
        RETURN weir.note$build(s, i, weir.spent_by$build(p, p.rates, i, expires), used);
    ELSE
        RETURN weir.add$build(s, rate, expires, weir.fill$build(0, weir.cost$build(p.rates, i), used));
    END CASE;
END
$$;

CREATE OR REPLACE FUNCTION weir.begin$build(s weir.counters, p weir.params$build, now bigint)
RETURNS weir.counters LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    s := weir.without_meters$build(s);
    s.algorithm := p.algorithm;
    FOR i IN 1 .. cardinality(p.rates) / 5 LOOP
        s := weir.meter$build(s, p, i, now, 0);
    END LOOP;
    RETURN s;
END
$$;

-- roll carries windows on: those that ended start again or are dropped, and the
-- parameters' rates are taken over.
CREATE OR REPLACE FUNCTION weir.roll$build(s weir.counters, p weir.params$build, now bigint)
RETURNS weir.counters LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    rolled weir.counters := weir.without_meters$build(s);
    leftover boolean := false;
    index bigint;
    j int;
BEGIN
    FOR i IN 1 .. cardinality(p.rates) / 5 LOOP
        j := weir.find$build(s, p.rates, i);
        CONTINUE WHEN j = 0 OR p.algorithm <> 0;
        index := weir.index$build(p.rates, i, now);
        rolled := weir.add$build(rolled, p.rates[5 * i - 4 : 5 * i], index,
            CASE WHEN s.index[j] = index THEN s.used[j] ELSE 0 END);
    END LOOP;
    FOR i IN 1 .. cardinality(s.index) LOOP
        IF weir.index$build(s.rates, i, now) = s.index[i] AND weir.find$build(rolled, s.rates, i) = 0 THEN
            rolled := weir.add$build(rolled, s.rates[5 * i - 4 : 5 * i], s.index[i], s.used[i]);
            leftover := true;
        END IF;
    END LOOP;
    IF leftover THEN
        RETURN rolled;
    END IF;
    IF p.algorithm <> 0 THEN
        s.began := now;
    END IF;
    s := weir.begin$build(s, p, now);
    FOR i IN 1 .. cardinality(s.index) LOOP
        j := weir.find$build(rolled, s.rates, i);
        IF j > 0 THEN
            s.used[i] := rolled.used[j];
        END IF;
    END LOOP;
    RETURN s;
END
$$;

-- convert takes over other rates of the same machine.
CREATE OR REPLACE FUNCTION weir.convert$build(s weir.counters, p weir.params$build, now bigint)
RETURNS weir.counters LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    old CONSTANT weir.counters := s;
    expires CONSTANT bigint := greatest(now, s.expires);
    starts int;
    j int;
BEGIN
    s := weir.without_meters$build(s);
    s.algorithm := p.algorithm;
    FOR i IN 1 .. cardinality(p.rates) / 5 LOOP
        j := weir.find$build(old, p.rates, i);
        IF j = 0 THEN
            s := weir.meter$build(s, p, i, expires, weir.most_in_use$build(old, now));
        ELSIF weir.machine$build(p.algorithm) = 1 OR old.rates[5 * j - 4] = p.rates[5 * i - 4] THEN
            s := weir.add$build(s, p.rates[5 * i - 4 : 5 * i], old.index[j], old.used[j]);
            starts := weir.log_starts$build(old, j);
            s.entries[i] := old.entries[j];
            s.log := s.log || old.log[starts + 1 : starts + 2 * old.entries[j]];
        ELSE
            s := weir.meter$build(s, p, i, expires, weir.in_use$build(old, j, now));
        END IF;
    END LOOP;
    RETURN s;
END
$$;

-- spent returns the most that may have been spent in the span up to now, by the meter
-- with the most.
CREATE OR REPLACE FUNCTION weir.spent$build(s weir.counters, now bigint, span bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    max_exact CONSTANT bigint := 9007199254740991;
    most bigint := 0;
    units bigint;
    cost bigint;
    drain bigint;
    level bigint;
BEGIN
    FOR i IN 1 .. cardinality(s.index) LOOP
        IF weir.machine$build(s.algorithm) = 1 THEN
            units := weir.in_use$build(s, i, now);
            IF span > s.rates[5 * i - 3] THEN
                units := greatest(units, s.rates[5 * i - 4] *
                    least(max_exact / s.rates[5 * i - 4], weir.ceil_div$build(span, s.rates[5 * i - 3])));
            END IF;
        ELSE
            cost := weir.cost$build(s.rates, i);
            drain := weir.drain$build(s.rates, i);
            level := weir.drain_to$build(s.used[i], s.index[i], now, drain, 0);
            IF span > (max_exact - level) / drain THEN
                units := max_exact / cost;
            ELSE
                units := weir.ceil_div$build(level + span * drain, cost);
            END IF;
        END IF;
        most := greatest(most, units);
    END LOOP;
    RETURN most;
END
$$;

-- succeed begins the parameters' rates where meters of another machine were.
CREATE OR REPLACE FUNCTION weir.succeed$build(s weir.counters, p weir.params$build, now bigint)
RETURNS weir.counters LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    recalled CONSTANT int := 16;
    old CONSTANT weir.counters := s;
    part bigint;
BEGIN
    s.began := now;
    s := weir.begin$build(s, p, now);
    FOR i IN 1 .. cardinality(s.index) LOOP
        CASE weir.machine$build(p.algorithm)
        WHEN 0 THEN
            s.used[i] := weir.spent$build(old, now, now - weir.start$build(s.rates, i, s.index[i]));
        WHEN 1 THEN
            part := weir.ceil_div$build(s.rates[5 * i - 3], recalled);
            FOR j IN REVERSE recalled .. 1 LOOP
                s := weir.note$build(s, i, weir.spent_by$build(p, p.rates, i, now - (j - 1) * part),
                    weir.spent$build(old, now, j * part) - weir.spent$build(old, now, (j - 1) * part));
            END LOOP;
            s := weir.note$build(s, i, weir.spent_by$build(p, p.rates, i, now), weir.spent$build(old, now, 0));
        ELSE
            s.used[i] := weir.fill$build(0, weir.cost$build(p.rates, i), weir.spent$build(old, now, 0));
        END CASE;
    END LOOP;
    RETURN s;
END
$$;

-- take_over returns s with the parameters' rates, as far as they are in force at now.
CREATE OR REPLACE FUNCTION weir.take_over$build(s weir.counters, p weir.params$build, now bigint)
RETURNS weir.counters LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF s.index = '{}' THEN
        RETURN weir.begin$build(s, p, now);
    ELSIF s.algorithm = 0 THEN
        RETURN weir.roll$build(s, p, now);
    ELSIF weir.follows$build(s, p) THEN
        RETURN weir.convert$build(s, p, now);
    ELSIF now > s.expires THEN
        RETURN weir.succeed$build(s, p, now);
    END IF;
    RETURN s;
END
$$;

-- advance brings the meters, which the parameters go on with, to now.
CREATE OR REPLACE FUNCTION weir.advance$build(s weir.counters, p weir.params$build, now bigint, since bigint)
RETURNS weir.counters LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    machine CONSTANT int := weir.machine$build(s.algorithm);
    index bigint;
BEGIN
    FOR i IN 1 .. cardinality(s.index) LOOP
        CASE machine
        WHEN 0 THEN
            index := weir.index$build(s.rates, i, now);
            IF index <> s.index[i] THEN
                s.index[i] := index;
                s.used[i] := 0;
            END IF;
        WHEN 1 THEN
            s := weir.alive$build(s, i, now);
            s.index[i] := greatest(s.index[i], now);
        ELSE
            s := weir.settle$build(s, p, i, now, since);
        END CASE;
    END LOOP;
    RETURN s;
END
$$;

-- beat counts the holders of a new shortest window from zero.
CREATE OR REPLACE FUNCTION weir.beat$build(s weir.counters) RETURNS weir.counters
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    shortest int := 1;
BEGIN
    IF s.algorithm <> 0 THEN
        s.pulse := 0;
        s.asked := 0;
        s.before := 0;
        RETURN s;
    END IF;
    FOR i IN 2 .. cardinality(s.index) LOOP
        IF s.rates[5 * i - 3] < s.rates[5 * shortest - 3] THEN
            shortest := i;
        END IF;
    END LOOP;
    IF s.index[shortest] <> s.pulse THEN
        s.before := CASE WHEN s.index[shortest] = s.pulse + 1 THEN s.asked ELSE 0 END;
        s.asked := 0;
        s.pulse := s.index[shortest];
    END IF;
    RETURN s;
END
$$;

-- adopt returns the state in force at now.
CREATE OR REPLACE FUNCTION weir.adopt$build(s weir.counters, p weir.params$build, now bigint, since bigint)
RETURNS weir.counters LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    old CONSTANT weir.counters := s;
BEGIN
    IF s.algorithm <> p.algorithm OR s.rates <> p.rates THEN
        s := weir.take_over$build(s, p, now);
    END IF;
    IF old.algorithm <> 0 AND p.generation > old.generation AND NOT weir.waits$build(s, p) THEN
        s.began := now;
    END IF;
    s.generation := p.generation;
    IF NOT weir.waits$build(s, p) THEN
        s := weir.advance$build(s, p, now, since);
    END IF;
    IF old.tenants <> '{}' AND NOT (weir.fair$build(s, p)
        AND weir.same_windows$build(s.rates, 1, old.rates, 1) AND s.index[1] - old.index[1] IN (0, 1)) THEN
        s.tenants := '{}';
        s.shares := '{}';
    ELSIF old.tenants <> '{}' AND s.index[1] > old.index[1] THEN
        s := weir.lately$build(s, p);
    END IF;
    RETURN weir.beat$build(s);
END
$$;

-- sliding.go. The sum of a log stands in used.

CREATE OR REPLACE FUNCTION weir.spent_by$build(p weir.params$build, rates bigint[], i int, expires bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    max_log CONSTANT bigint := 1024;
    part bigint := 1;
BEGIN
    IF p.algorithm = 1 THEN
        part := weir.ceil_div$build(rates[5 * i - 3], p.buckets);
    ELSIF rates[5 * i - 4] > max_log THEN
        part := weir.ceil_div$build(rates[5 * i - 3], max_log);
    END IF;
    RETURN weir.ceil_div$build(expires, part) * part;
END
$$;

-- log_starts returns after how many elements the log of meter number i starts.
CREATE OR REPLACE FUNCTION weir.log_starts$build(s weir.counters, i int) RETURNS int
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    before int := 0;
BEGIN
    FOR j IN 1 .. i - 1 LOOP
        before := before + 2 * s.entries[j];
    END LOOP;
    RETURN before;
END
$$;

-- log_ends returns the instant from which on no entry of meter number i counts.
CREATE OR REPLACE FUNCTION weir.log_ends$build(s weir.counters, i int, starts int) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN s.entries[i] = 0 THEN 0
                ELSE s.log[starts + 2 * s.entries[i] - 1] + s.rates[5 * i - 3] END
$$;

-- alive drops the entries of meter number i that count no more at now.
CREATE OR REPLACE FUNCTION weir.alive$build(s weir.counters, i int, now bigint) RETURNS weir.counters
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    starts CONSTANT int := weir.log_starts$build(s, i);
    span CONSTANT bigint := s.rates[5 * i - 3];
    dead int := 0;
BEGIN
    WHILE dead < s.entries[i] AND s.log[starts + 2 * dead + 1] + span <= now LOOP
        dead := dead + 1;
        s.used[i] := s.used[i] - s.log[starts + 2 * dead];
    END LOOP;
    IF dead > 0 THEN
        s.entries[i] := s.entries[i] - dead;
        s.log := s.log[1 : starts] || s.log[starts + 2 * dead + 1 :];
    END IF;
    RETURN s;
END
$$;

-- sliding_wait returns how long it takes until the amount of units is left.
CREATE OR REPLACE FUNCTION weir.sliding_wait$build(s weir.counters, i int, now bigint, amount bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    starts CONSTANT int := weir.log_starts$build(s, i);
    excess bigint := s.used[i] - s.rates[5 * i - 4] + amount;
    wait bigint := 0;
BEGIN
    FOR j IN 1 .. s.entries[i] LOOP
        EXIT WHEN excess <= 0;
        excess := excess - s.log[starts + 2 * j];
        wait := s.log[starts + 2 * j - 1] + s.rates[5 * i - 3] - now;
    END LOOP;
    RETURN wait;
END
$$;

-- note counts a grant in meter number i.
CREATE OR REPLACE FUNCTION weir.note$build(s weir.counters, i int, at bigint, amount bigint) RETURNS weir.counters
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    max_log CONSTANT bigint := 1024;
    max_exact CONSTANT bigint := 9007199254740991;
    ends CONSTANT int := weir.log_starts$build(s, i) + 2 * s.entries[i];
BEGIN
    amount := least(amount, max_exact - s.used[i]);
    IF amount = 0 THEN
        RETURN s;
    END IF;
    s.used[i] := s.used[i] + amount;
    IF s.entries[i] > 0 AND (at <= s.log[ends - 1] OR s.entries[i] >= max_log) THEN
        s.log[ends - 1] := greatest(at, s.log[ends - 1]);
        s.log[ends] := s.log[ends] + amount;
    ELSE
        s.log := s.log[1 : ends] || ARRAY[at, amount] || s.log[ends + 1 :];
        s.entries[i] := s.entries[i] + 1;
    END IF;
    RETURN s;
END
$$;

-- erase takes units off meter number i that were granted at the instant at or later,
-- the oldest first. It returns NULL when there are fewer.
CREATE OR REPLACE FUNCTION weir.erase$build(s weir.counters, i int, at bigint, amount bigint) RETURNS weir.counters
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    starts CONSTANT int := weir.log_starts$build(s, i);
    log bigint[] := s.log[1 : starts];
    part bigint;
BEGIN
    s.used[i] := s.used[i] - amount;
    FOR j IN 1 .. s.entries[i] LOOP
        part := 0;
        IF s.log[starts + 2 * j - 1] >= at THEN
            part := least(amount, s.log[starts + 2 * j]);
            amount := amount - part;
        END IF;
        IF s.log[starts + 2 * j] > part THEN
            log := log || ARRAY[s.log[starts + 2 * j - 1], s.log[starts + 2 * j] - part];
        END IF;
    END LOOP;
    IF amount > 0 THEN
        RETURN NULL;
    END IF;
    s.log := log || s.log[starts + 2 * s.entries[i] + 1 :];
    s.entries[i] := (cardinality(log) - starts) / 2;
    RETURN s;
END
$$;

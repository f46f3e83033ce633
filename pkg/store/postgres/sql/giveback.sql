-- giveback.go.

-- return_to_windows returns s without the returned units of a grant, NULL when its
-- windows are not open any more.
CREATE OR REPLACE FUNCTION weir.return_to_windows$build(
    s weir.counters, p weir.params$build, c weir.command$build, since bigint)
RETURNS weir.counters LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    account text;
BEGIN
    FOR i IN 1 .. cardinality(s.index) LOOP
        IF s.rates[5 * i - 3] <> c.windows[5 * i - 3] OR s.rates[5 * i - 1] <> c.windows[5 * i - 2]
            OR s.rates[5 * i] <> c.windows[5 * i - 1] OR s.index[i] <> c.windows[5 * i]
            OR c.want > s.used[i] OR weir.start$build(s.rates, i, s.index[i]) < since THEN
            RETURN NULL;
        END IF;
        s.used[i] := s.used[i] - c.want;
    END LOOP;
    IF weir.fair$build(s, p) THEN
        account := weir.account$build(s, p, c.tenant);
        IF c.want > coalesce(weir.used_by$build(s, account), 0) THEN
            RETURN NULL;
        END IF;
        s := weir.grant$build(s, account, -c.want);
    END IF;
    RETURN s;
END
$$;

-- take_off_meter returns s without the returned units of meter number i, which has no
-- windows, NULL when they do not count any more.
CREATE OR REPLACE FUNCTION weir.take_off_meter$build(
    s weir.counters, p weir.params$build, i int, c weir.command$build)
RETURNS weir.counters LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    max_exact CONSTANT bigint := 9007199254740991;
    cost CONSTANT bigint := weir.cost$build(s.rates, i);
    drain CONSTANT bigint := weir.drain$build(s.rates, i);
    age CONSTANT bigint := s.index[i] - c.granted_at;
    rest bigint;
BEGIN
    IF s.algorithm <= 2 THEN
        IF age >= s.rates[5 * i - 3] THEN
            RETURN NULL;
        END IF;
        RETURN weir.erase$build(s, i, c.granted_at, c.want);
    END IF;
    IF c.want > max_exact / cost OR age > c.want * cost / drain THEN
        RETURN NULL;
    END IF;
    rest := c.want * cost - age * drain;
    IF rest <= 0 OR rest > s.used[i] THEN
        RETURN NULL;
    END IF;
    s.used[i] := greatest(p.lifetime * drain, s.used[i] - rest);
    RETURN s;
END
$$;

-- take_off returns s without the returned units of a grant, NULL when they do not
-- count any more.
CREATE OR REPLACE FUNCTION weir.take_off$build(
    s weir.counters, p weir.params$build, now bigint, c weir.command$build, since bigint)
RETURNS weir.counters LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF weir.waits$build(s, p) OR s.began > 0 AND c.granted_at <= s.began
        OR cardinality(c.windows) <> 5 * cardinality(s.index) THEN
        RETURN NULL;
    ELSIF s.algorithm = 0 THEN
        RETURN weir.return_to_windows$build(s, p, c, since);
    ELSIF s.algorithm = 5 OR c.granted_at > now THEN
        RETURN NULL;
    END IF;
    FOR i IN 1 .. cardinality(s.index) LOOP
        IF s.rates[5 * i - 4] <> c.windows[5 * i - 4] OR s.rates[5 * i - 3] <> c.windows[5 * i - 3]
            OR c.granted_at < since THEN
            RETURN NULL;
        END IF;
        s := weir.take_off_meter$build(s, p, i, c);
        IF s.key IS NULL THEN
            RETURN NULL;
        END IF;
    END LOOP;
    RETURN s;
END
$$;

-- give_back takes unspent units of a grant off again.
CREATE OR REPLACE FUNCTION weir.give_back$build(
    INOUT s weir.counters, p weir.params$build, now bigint, c weir.command$build, since bigint, OUT reply bigint[])
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    granted CONSTANT bigint := 0;
    forfeited CONSTANT bigint := 6;
    back CONSTANT weir.counters := weir.take_off$build(s, p, now, c, since);
BEGIN
    IF back.key IS NULL THEN
        reply := weir.describe$build(s, p, now, c.tenant, since, forfeited);
    ELSE
        s := back;
        reply := weir.describe$build(s, p, now, c.tenant, since, granted, c.want);
    END IF;
END
$$;

-- bucket.go.

CREATE OR REPLACE FUNCTION weir.brim$build(
    algorithm bigint, max_delay bigint, cost bigint, drain bigint, rates bigint[], i int)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN algorithm = 5 THEN max_delay * drain + cost
                WHEN rates[5 * i - 2] = 0 THEN rates[5 * i - 4] * cost
                ELSE rates[5 * i - 2] * cost END
$$;

CREATE OR REPLACE FUNCTION weir.drain_to$build(level bigint, since bigint, now bigint, drain bigint, lowest bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN now - since > level / drain THEN lowest
                ELSE greatest(lowest, level - greatest(0, now - since) * drain) END
$$;

-- settle brings meter number i to now.
CREATE OR REPLACE FUNCTION weir.settle$build(s weir.counters, p weir.params$build, i int, now bigint, since bigint)
RETURNS weir.counters LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    cost CONSTANT bigint := weir.cost$build(s.rates, i);
    drain CONSTANT bigint := weir.drain$build(s.rates, i);
    level bigint := weir.drain_to$build(weir.brim$build(p.algorithm, p.max_delay, cost, drain, s.rates, i), since, now, drain, 0);
BEGIN
    s.used[i] := weir.drain_to$build(s.used[i], s.index[i], now, drain, p.lifetime * drain);
    s.index[i] := greatest(s.index[i], now);
    IF since > 0 AND level >= s.used[i] THEN
        s.used[i] := level;
        s.index[i] := greatest(s.index[i], since);
    END IF;
    RETURN s;
END
$$;

-- fill returns the level after the amount, up to the highest that can be counted.
CREATE OR REPLACE FUNCTION weir.fill$build(level bigint, cost bigint, amount bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT level + least(amount, (9007199254740991 - level) / cost) * cost $$;

-- delay returns how long the last unit of meter number i waits for its turn.
CREATE OR REPLACE FUNCTION weir.delay$build(s weir.counters, i int) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT weir.ceil_div$build(greatest(0, s.used[i] - weir.cost$build(s.rates, i)), weir.drain$build(s.rates, i))
$$;

-- account.go and opinions.go.

CREATE OR REPLACE FUNCTION weir.quarantined$build(s weir.pools) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT s.now < s.until
$$;

CREATE OR REPLACE FUNCTION weir.reserve$build(h weir.holders, handoff bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT greatest(CASE handoff WHEN 1 THEN h.share ELSE h.unacked END, h.in_flight)
$$;

-- enter adds a holder to the sums, or takes it out of them when times is -1.
CREATE OR REPLACE FUNCTION weir.enter$build(s weir.pools, h weir.holders, times bigint) RETURNS weir.pools
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    s.reserved := s.reserved + times * weir.reserve$build(h, s.params[6]);
    s.granted := s.granted + times * h.share;
    s.in_flight := s.in_flight + times * h.in_flight;
    IF NOT h.hungry THEN
        s.modest := s.modest + times * (h.in_flight + 1);
    END IF;
    RETURN s;
END
$$;

-- opinion returns the one that decides, of those of all holders but one and its own,
-- or 0 when there is none.
CREATE OR REPLACE FUNCTION weir.opinion$build(s weir.pools, but bytea, own bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    held bigint[];
BEGIN
    SELECT array_agg(o ORDER BY o) INTO held FROM (
        SELECT h.opinion FROM weir.holders h WHERE h.pool = s.key AND h.opinion > 0 AND h.name IS DISTINCT FROM but
        UNION ALL SELECT own WHERE own > 0
    ) AS opinions (o);
    RETURN coalesce(held[CASE s.params[4] WHEN 1 THEN 1 ELSE (cardinality(held) + 1) / 2 END], 0);
END
$$;

CREATE OR REPLACE FUNCTION weir.settle$build(s weir.pools) RETURNS weir.pools
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    s.fleet := least(greatest(CASE s.opinion WHEN 0 THEN s.fleet ELSE s.opinion END, s.params[1]), s.params[2]);
    IF s.reserved <= s.fleet THEN
        s.bound := s.fleet;
        RETURN s;
    END IF;
    s.bound := greatest(s.bound, s.fleet);
    IF weir.quarantined$build(s) THEN
        s.bound := greatest(s.bound, s.reserved);
    END IF;
    RETURN s;
END
$$;

-- The functions that prepare a counter for count.sql.

-- clock returns the server's time in microseconds since the Unix epoch.
CREATE OR REPLACE FUNCTION weir.clock$build() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM weir.instant$build()) * 1000000)::bigint
$$;

-- at is the inverse. The product is one of floating point, and exact below 2^53.
CREATE OR REPLACE FUNCTION weir.at$build(now bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
    SELECT timestamptz 'epoch' + now * interval '1 microsecond'
$$;

-- terms names parameters of one window: a caller with others asks step.
CREATE OR REPLACE FUNCTION weir.terms$build(
    generation bigint, since bigint, rates bigint[], born bigint[], resume boolean) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT generation::text || ' ' || since::text || ' ' || array_to_string(rates, ' ')
        || CASE WHEN resume THEN ' resume' ELSE '' END || CASE WHEN born = '{}' THEN '' ELSE ' ' || array_to_string(born, ' ') END
$$;

-- ease returns s as it is to be written by a decision at now. Until its window ends,
-- takes that it can grant as a whole change nothing but the count when it is the only
-- one, the memory covers it, and neither tenants nor holders split it.
CREATE OR REPLACE FUNCTION weir.ease$build(
    s weir.counters, now bigint, remembered bigint, since bigint, born bigint[], resume boolean)
RETURNS weir.counters LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    s.terms := NULL;
    s.starts := NULL;
    s.ends := NULL;
    s.server := NULL;
    s.writer := NULL;
    IF s.algorithm = 0 AND cardinality(s.index) = 1 AND s.tenants = '{}' AND s.asked >= s.before
        AND weir.start$build(s.rates, 1, s.index[1]) >= greatest(remembered, since) THEN
        s.terms := weir.terms$build(s.generation, since, s.rates, born, resume);
        s.starts := weir.at$build(now);
        s.ends := weir.at$build(weir.start$build(s.rates, 1, s.index[1] + 1));
        s.server := pg_postmaster_start_time();
        s.writer := pg_current_xact_id()::xid;
    END IF;
    RETURN s;
END
$$;

-- clock returns the server's time in microseconds since the Unix epoch, not that of
-- the transaction's start: the caller may have waited for the budget since.
CREATE OR REPLACE FUNCTION weir.clock$build() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

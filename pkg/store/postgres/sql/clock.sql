-- instant returns the server's time, not that of the transaction's start: the caller
-- may have waited for the counter since.
CREATE OR REPLACE FUNCTION weir.instant$build() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT clock_timestamp()
$$;

-- Stands in for sql/clock.sql: the time is a row of a table.
CREATE OR REPLACE FUNCTION weir.clock$build() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT now FROM public.clock
$$;

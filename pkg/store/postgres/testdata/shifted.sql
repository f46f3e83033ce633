-- Stands in for sql/clock.sql: the server's time, moved by a setting of the database.
CREATE OR REPLACE FUNCTION weir.clock$build() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
        + coalesce(current_setting('weir.shift', true)::bigint, 0)
$$;

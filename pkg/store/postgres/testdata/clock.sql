-- Stands in for sql/clock.sql: the time is a setting of the connection.
CREATE OR REPLACE FUNCTION weir.clock$build() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT current_setting('weir.now')::bigint
$$;

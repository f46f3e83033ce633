-- Stands in for sql/clock.sql: the server's time, moved by a setting of the database.
CREATE OR REPLACE FUNCTION weir.instant$build() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT clock_timestamp() + coalesce(current_setting('weir.shift', true)::bigint, 0) * interval '1 microsecond'
$$;

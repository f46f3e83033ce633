-- Stands in for sql/clock.sql: the time is a setting of the connection.
CREATE OR REPLACE FUNCTION weir.instant$build() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT timestamptz 'epoch' + current_setting('weir.now')::bigint * interval '1 microsecond'
$$;

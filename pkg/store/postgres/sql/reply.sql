-- reply returns reason, algorithm, granted, remaining, limit, reset after, expires in,
-- retry after, delay, now, the number of windows and of each limit, window, burst,
-- offset, monthly, index and granted.
CREATE OR REPLACE FUNCTION weir.reply$build(
    s weir.counters, now bigint, reason bigint, granted bigint DEFAULT 0, remaining bigint DEFAULT 0,
    most bigint DEFAULT 0, resets bigint DEFAULT 0, expires_in bigint DEFAULT 0, retry_after bigint DEFAULT 0,
    delay bigint DEFAULT 0)
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    n CONSTANT int := cardinality(s.index);
    r bigint[] := ARRAY[
        reason, s.algorithm, granted, remaining, most, resets, expires_in, retry_after, delay, now, n];
BEGIN
    FOR i IN 1 .. n LOOP
        IF s.algorithm = 0 THEN
            r := r || s.rates[5 * i - 4 : 5 * i] || ARRAY[s.index[i], s.used[i]];
        ELSE
            r := r || s.rates[5 * i - 4 : 5 * i] || ARRAY[weir.index$build(s.rates, i, now), 0];
        END IF;
    END LOOP;
    RETURN r;
END
$$;

-- describe returns a reply with what is left in the state and how long a grant lives.
CREATE OR REPLACE FUNCTION weir.describe$build(
    s weir.counters, p weir.params$build, now bigint, tenant text, since bigint, reason bigint,
    granted bigint DEFAULT 0, retry_after bigint DEFAULT 0, delay bigint DEFAULT 0)
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    max_window CONSTANT bigint := 2678400000000;
    r record := weir.read$build(s, p, now, 1, tenant, since);
    expires_in bigint := p.lifetime;
BEGIN
    IF s.algorithm = 0 THEN
        expires_in := max_window;
        FOR i IN 1 .. cardinality(s.index) LOOP
            expires_in := least(expires_in, weir.start$build(s.rates, i, s.index[i] + 1) - now);
        END LOOP;
    END IF;
    RETURN weir.reply$build(s, now, reason, granted, r.room, r.most, r.resets, expires_in, retry_after, delay);
END
$$;

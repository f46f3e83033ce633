-- slots.go and expiries.go.

CREATE OR REPLACE FUNCTION weir.remove$build(s weir.pools, h weir.holders) RETURNS weir.pools
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    s := weir.enter$build(s, h, -1);
    s.holders := s.holders - 1;
    DELETE FROM weir.holders o WHERE o.pool = s.key AND o.name = h.name;
    UPDATE weir.holders o SET slot = h.slot WHERE o.pool = s.key AND o.slot = s.holders AND h.slot < s.holders;
    RETURN s;
END
$$;

-- expire forgets all but one whose share has expired, in the order in which they did,
-- by name where that is the same.
CREATE OR REPLACE FUNCTION weir.expire$build(s weir.pools, but bytea) RETURNS weir.pools
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    h weir.holders;
    gone bytea;
BEGIN
    FOREACH gone IN ARRAY ARRAY(
        SELECT o.name FROM weir.holders o WHERE o.pool = s.key AND o.expires <= s.now AND o.name IS DISTINCT FROM but
        ORDER BY o.expires, o.name)
    LOOP
        SELECT * INTO h FROM weir.holders o WHERE o.pool = s.key AND o.name = gone;
        s := weir.remove$build(s, h);
    END LOOP;
    SELECT coalesce(min(o.expires), s.now) INTO s.next FROM weir.holders o
    WHERE o.pool = s.key AND o.name IS DISTINCT FROM but;
    RETURN s;
END
$$;

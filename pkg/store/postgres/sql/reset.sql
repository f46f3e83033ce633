-- set_back sets at most the given number of counters back whose keys are not below low and below high,
-- and notes that under the name. It returns how many there were, and the last key.
CREATE OR REPLACE FUNCTION weir.set_back$build(name text, low text, high text, most bigint)
RETURNS text[] LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    now bigint;
    list text[];
    lost record;
    kept record;
BEGIN
    SELECT array_agg(k.key ORDER BY k.key) INTO list FROM (
        SELECT c.key FROM weir.counters c WHERE c.key >= low AND c.key < high
        UNION SELECT c.key FROM weir.counters_durable c WHERE c.key >= low AND c.key < high
        ORDER BY key LIMIT most) k;
    PERFORM FROM weir.counters c WHERE c.key = ANY (list) ORDER BY c.key FOR UPDATE;
    PERFORM FROM weir.counters_durable c WHERE c.key = ANY (list) ORDER BY c.key FOR UPDATE;
    now := weir.clock$build();
    UPDATE weir.counters c SET tenants = '{}', shares = '{}', log = '{}', terms = NULL,
        used = array_fill(0::bigint, ARRAY[cardinality(c.index)]), entries = array_fill(0::bigint, ARRAY[cardinality(c.index)]),
        index = CASE WHEN c.algorithm = 0 THEN c.index ELSE (SELECT array_agg(greatest(i, now)) FROM unnest(c.index) i) END
    WHERE c.key = ANY (list) AND c.index <> '{}';
    UPDATE weir.counters_durable c SET tenants = '{}', shares = '{}', log = '{}', terms = NULL,
        used = array_fill(0::bigint, ARRAY[cardinality(c.index)]), entries = array_fill(0::bigint, ARRAY[cardinality(c.index)]),
        index = CASE WHEN c.algorithm = 0 THEN c.index ELSE (SELECT array_agg(greatest(i, now)) FROM unnest(c.index) i) END
    WHERE c.key = ANY (list) AND c.index <> '{}';
    lost := weir.recall$build(now);
    kept := weir.recall_durable$build(now);
    DELETE FROM weir.resets r WHERE r.at < now - 2 * 2678400000000;
    INSERT INTO weir.resets AS r (name, at) VALUES (name, greatest(now, lost.since, kept.since))
    ON CONFLICT (name) DO UPDATE SET at = greatest(r.at, excluded.at);
    RETURN ARRAY[coalesce(cardinality(list), 0)::text, coalesce(list[cardinality(list)], '')];
END
$$;

-- is_set_back reports whether a counter, or its limit, was set back at the instant or later.
CREATE OR REPLACE FUNCTION weir.is_set_back$build(counter text, known bigint) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
    SELECT EXISTS (SELECT FROM weir.resets r WHERE r.name IN (counter, weir.scope(counter)) AND r.at >= known)
$$;

-- fresh_windows makes those of several counters that are new and that a take by one rate opens,
-- in one statement, and returns their names and the time of the decision: each is granted what it
-- wants, or all there is. It follows step, to which it leaves counters that are there, takes that
-- are refused, and all of them at the edge of a window. They come in the order of their names.
CREATE OR REPLACE FUNCTION weir.fresh_windows$build(
    counters text[], mins bigint[], wants bigint[], firsts boolean[], floors bigint[],
    generation bigint, rates bigint[], since bigint, born bigint[], resume boolean,
    OUT made text[], OUT now bigint)
-- A plan that was made while there were few counters would go on to read all of them. One that has to
-- read a table of one row is then thought to be dear enough to be compiled, each time.
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_variable
DECLARE
    began CONSTANT bigint := weir.clock$build();
    number CONSTANT bigint := weir.index$build(rates, 1, began);
    opens CONSTANT bigint := weir.start$build(rates, 1, number);
    closes CONSTANT bigint := weir.start$build(rates, 1, number + 1);
    memory record;
BEGIN
    -- A trigger is called for each row, so none is tried that is there.
    WITH fresh AS (
        INSERT INTO weir.counters (
            key, keep_until, generation, algorithm, pulse, asked, rates, index, used, entries, terms, starts, ends, server, writer)
        SELECT t.key, closes + rates[2], generation, 0, number, t.first::int, rates, ARRAY[number], ARRAY[least(t.want, rates[1])], '{0}',
            weir.terms$build(generation, since, rates, born, resume), weir.at$build(began), weir.at$build(closes),
            pg_postmaster_start_time(), pg_current_xact_id()::xid
        FROM unnest(counters, mins, wants, firsts, floors) WITH ORDINALITY t (key, low, want, first, floor, i)
        WHERE t.low <= rates[1] AND t.floor <= began AND counters[t.i - 1] IS DISTINCT FROM t.key
            AND NOT EXISTS (SELECT FROM weir.counters c WHERE c.key = t.key)
            AND NOT EXISTS (SELECT FROM weir.counters_durable c WHERE c.key = t.key)
        ORDER BY t.i
        ON CONFLICT DO NOTHING
        RETURNING key)
    SELECT coalesce(array_agg(f.key), '{}') INTO made FROM fresh f;
    IF made = '{}' THEN
        RETURN;
    END IF;
    -- The clock and the memory are those of step: read behind the lock.
    now := weir.clock$build();
    memory := weir.recall$build(now);
    IF memory.latest > now THEN
        now := weir.clock$build(); -- a sweep noted a later instant meanwhile
    END IF;
    IF now < greatest(began, memory.latest) OR now >= closes
        OR greatest(since, CASE WHEN resume OR memory.id = ANY (born) THEN 0 ELSE memory.since END) > opens THEN
        DELETE FROM weir.counters c WHERE c.key = ANY (made);
        made := '{}';
    END IF;
END
$$;

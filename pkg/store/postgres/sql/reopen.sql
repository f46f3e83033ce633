-- reopen_windows begins the window that is open for those of several counters that were last asked in an
-- earlier one, in one statement, and returns their names, what each is granted, and the time of the
-- decision. It follows step, to which it leaves all others: counters that are edited, or moved, or ahead of
-- the clock, and all of them at the edge of a window or where the memory may lack grants of it. They come
-- in the order of their names.
CREATE OR REPLACE FUNCTION weir.reopen_windows$build(
    counters text[], mins bigint[], wants bigint[], firsts boolean[], floors bigint[],
    generation bigint, rates bigint[], since bigint, born bigint[], resume boolean,
    OUT reopened text[], OUT granted bigint[], OUT now bigint)
-- The settings are those of fresh_windows, for the same reasons.
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_variable
DECLARE
    began CONSTANT bigint := weir.clock$build();
    number CONSTANT bigint := weir.index$build(rates, 1, began);
    opens CONSTANT bigint := weir.start$build(rates, 1, number);
    closes CONSTANT bigint := weir.start$build(rates, 1, number + 1);
    askeds bigint[];
    befores bigint[];
    memory record;
BEGIN
    -- First the locks, then the clock and the memory.
    SELECT array_agg(l.key), array_agg(greatest(l.low, least(l.want,
            weir.ceil_div$build(rates[1], greatest(0, l.before - l.asked) + 1)))),
        array_agg(l.asked), array_agg(l.before) INTO reopened, granted, askeds, befores
    FROM (
        SELECT c.key, t.low, t.want, t.first::int::bigint AS asked, CASE WHEN c.pulse = number - 1 THEN c.asked ELSE 0 END AS before
        FROM unnest(counters, mins, wants, firsts, floors) WITH ORDINALITY t (key, low, want, first, floor, i)
        JOIN weir.counters c ON c.key = t.key
        WHERE t.low <= rates[1] AND t.floor <= began AND counters[t.i - 1] IS DISTINCT FROM t.key
            AND c.generation = generation AND c.algorithm = 0 AND c.rates = rates AND c.tenants = '{}'
            AND c.index[1] < number AND c.pulse = c.index[1] AND c.began <= began
        ORDER BY t.i
        FOR UPDATE OF c) l;
    IF reopened IS NULL THEN
        reopened := '{}';
        RETURN;
    END IF;
    now := weir.clock$build();
    memory := weir.recall$build(now);
    IF memory.latest > now THEN
        now := weir.clock$build(); -- a sweep noted a later instant meanwhile
    END IF;
    IF now < greatest(began, memory.latest) OR now >= closes
        OR greatest(since, CASE WHEN resume OR memory.id = ANY (born) THEN 0 ELSE memory.since END) > opens THEN
        reopened := '{}';
        RETURN;
    END IF;
    UPDATE weir.counters c SET
        keep_until = weir.keep$build(c.keep_until, greatest(c.expires, closes + rates[2]), rates[2]),
        pulse = number, asked = r.asked, before = r.before, index = ARRAY[number], used = ARRAY[r.units],
        terms = CASE WHEN r.asked >= r.before THEN weir.terms$build(generation, since, rates, born, resume) END,
        starts = CASE WHEN r.asked >= r.before THEN weir.at$build(now) END,
        ends = CASE WHEN r.asked >= r.before THEN weir.at$build(closes) END,
        server = CASE WHEN r.asked >= r.before THEN pg_postmaster_start_time() END,
        writer = CASE WHEN r.asked >= r.before THEN pg_current_xact_id()::xid END
    FROM unnest(reopened, granted, askeds, befores) r (key, units, asked, before)
    WHERE c.key = r.key;
END
$$;

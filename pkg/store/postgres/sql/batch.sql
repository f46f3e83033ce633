-- batch decides takes of many counters at once, each by one window that is not a month and
-- that no tenants share, as far as only the count of a counter or its window can change. The
-- counters are all different and in order. It returns the replies of those that it decided,
-- each after its place in the list, and whether the lease of the clock ends soon. What it
-- does not return it did not touch: step, or steady, has to decide.
--
-- Two batches never wait for each other. Counters that are there are locked in order. The
-- others are held by the advisory lock that all take who make a counter, and those that
-- another is making are left out. Nothing but the rows of weir.volatile is waited for after
-- that, until the sweep at the end: a lease of the clock that is over is left to step, since
-- the rows of the memories are locked after those of counters.
--
-- The plans must not depend on how many rows the tables had when they were made.
CREATE OR REPLACE FUNCTION weir.batch$kind$build(
    counters text[], mins bigint[], wants bigint[], firsts boolean[], generations bigint[], limits bigint[],
    windows bigint[], bursts bigint[], offsets bigint[], sinces bigint[], floors bigint[], borns text[],
    resumes boolean[], all_terms text[], OUT replies bigint[], OUT renew boolean)
LANGUAGE plpgsql VOLATILE
SET lock_timeout = '100ms' SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    max_window CONSTANT bigint := 2678400000000;
    ahead CONSTANT bigint := 500000; -- renew of recall
    held int[];
    others int[];
    now bigint;
    memory record;
    made int;
BEGIN
    -- First the locks, then the clock: so a counter sees time in order.
    SELECT coalesce(array_agg(l.n), '{}') INTO held FROM (
        SELECT a.n FROM unnest(counters) WITH ORDINALITY a (key, n) JOIN weir.counters$kind c ON c.key = a.key
        ORDER BY a.n FOR UPDATE OF c) l;
    IF cardinality(held) < cardinality(counters) THEN
        SELECT array_agg(n) INTO others FROM generate_subscripts(counters, 1) n
        WHERE CASE WHEN n <> ALL (held) THEN pg_try_advisory_xact_lock(hashtextextended(counters[n], 0)) END;
        -- Nobody makes these any more. What was made meanwhile, or is in the other table, is left out.
        SELECT held || array_agg(n) INTO held FROM unnest(others) n WHERE
            NOT EXISTS (SELECT FROM weir.counters c WHERE c.key = counters[n])
            AND NOT EXISTS (SELECT FROM weir.counters_durable c WHERE c.key = counters[n])
            AND $fresh;
    END IF;
    now := weir.clock$build();
    SELECT m.since, m.latest, m.id, m.leased INTO memory FROM weir.memory$kind m
    WHERE m.server = pg_postmaster_start_time() AND m.writer = m.xmin AND $valid;
    IF NOT FOUND OR now >= memory.leased THEN
        RETURN;
    END IF;
    renew := now >= memory.leased - ahead;
    IF memory.latest > now THEN
        now := weir.clock$build(); -- a sweep noted a later instant meanwhile
    END IF;

    WITH decided AS MATERIALIZED (
        SELECT a.*, c.key IS NOT NULL AS there, t.*, w.starts, w.starts + a.length AS ends, s.*, u.*,
            NOT s.forgotten AND s.asked >= s.before AS eased,
            c.index[1] = t.number AND u.units = 0 AND NOT a.first AS same
        FROM unnest(counters, mins, wants, firsts, generations, limits, windows, bursts, offsets, sinces, floors, borns,
            resumes, all_terms) WITH ORDINALITY
            a (key, min, want, first, generation, most, length, burst, shift, since, floor, born, resume, terms, n)
        LEFT JOIN weir.counters$kind c ON c.key = a.key
        CROSS JOIN LATERAL (SELECT ARRAY[a.most, a.length, a.burst, a.shift, 0] AS rates,
            weir.floor_div$build(now + a.shift, a.length) AS number OFFSET 0) t
        CROSS JOIN LATERAL (SELECT t.number * a.length - a.shift AS starts,
            coalesce(CASE WHEN a.resume THEN 0 WHEN memory.id = ANY (a.born::bigint[]) THEN $since
                ELSE greatest(memory.since, $since) END, 0) AS known OFFSET 0) w
        CROSS JOIN LATERAL (SELECT
            w.starts < a.since OR w.starts < w.known
                AND NOT (w.known > now - max_window AND weir.is_set_back$build(a.key, w.known)) AS forgotten,
            CASE WHEN c.index[1] = t.number THEN c.used[1] ELSE 0 END AS used,
            CASE WHEN c.pulse = t.number THEN c.before WHEN c.pulse = t.number - 1 THEN c.asked ELSE 0 END AS before,
            CASE WHEN c.pulse = t.number THEN c.asked ELSE 0 END + a.first::int AS asked OFFSET 0) s
        CROSS JOIN LATERAL (SELECT CASE WHEN s.forgotten THEN 0 ELSE greatest(0, a.most - s.used) END AS room OFFSET 0) r
        CROSS JOIN LATERAL (SELECT r.room, CASE WHEN a.min <= r.room THEN
            greatest(a.min, least(a.want, weir.ceil_div$build(r.room, greatest(0, s.before - s.asked) + 1)))
            ELSE 0 END AS units OFFSET 0) u
        WHERE a.n = ANY (held) AND now >= greatest(memory.latest, a.floor, c.began)
            AND (c.key IS NULL OR c.generation = a.generation AND c.algorithm = 0 AND c.rates = t.rates
                AND c.tenants = '{}' AND c.index[1] <= t.number)
    ), updated AS (
        UPDATE weir.counters$kind c SET
            keep_until = greatest(c.expires, d.ends + d.length), pulse = d.number, asked = d.asked, before = d.before,
            index = ARRAY[d.number], used = ARRAY[d.used + d.units], terms = CASE WHEN d.eased THEN d.terms END,
            starts = CASE WHEN d.eased THEN weir.at$build(now) END, ends = CASE WHEN d.eased THEN weir.at$build(d.ends) END,
            server = CASE WHEN d.eased THEN pg_postmaster_start_time() END,
            writer = CASE WHEN d.eased THEN pg_current_xact_id()::xid END
        FROM decided d WHERE c.key = d.key AND d.there AND NOT d.same
    ), inserted AS (
        INSERT INTO weir.counters$kind (key, keep_until, generation, pulse, asked, rates, index, used, entries,
            terms, starts, ends, server, writer)
        SELECT d.key, d.ends + d.length, d.generation, d.number, d.asked, d.rates, ARRAY[d.number], ARRAY[d.units], '{0}',
            CASE WHEN d.eased THEN d.terms END, CASE WHEN d.eased THEN weir.at$build(now) END,
            CASE WHEN d.eased THEN weir.at$build(d.ends) END, CASE WHEN d.eased THEN pg_postmaster_start_time() END,
            CASE WHEN d.eased THEN pg_current_xact_id()::xid END
        FROM decided d WHERE NOT d.there
    )
    SELECT array_agg(ARRAY[d.n,
        CASE WHEN d.units > 0 THEN 0 WHEN d.min > d.most THEN 2 WHEN d.forgotten THEN 5 ELSE 1 END,
        0, d.units, d.room - d.units, d.most, d.ends - now, least(max_window, d.ends - now),
        CASE WHEN d.units > 0 OR d.min > d.most THEN 0 ELSE d.ends - now END, 0, now, 1] || d.rates
        || ARRAY[d.number, d.used + d.units]), count(*) FILTER (WHERE NOT d.there)
    INTO replies, made FROM decided d;
    IF made > 0 THEN
        PERFORM weir.sweep$kind$build(now, 6 + 2 * made);
    END IF;
END
$$;

-- together decides takes of several counters by one limit, which has no tenants, in one
-- transaction, and returns their replies in a row: of counters with one window that are new by one
-- statement, of those whose window has ended by another, and of the rest one after the other. Counters
-- that ended are then dropped once for all of them. The counters come in the order of their names, so two
-- calls do not wait for each other's. They may, rarely, for the memory or for a counter that is made
-- meanwhile: then one of them gives up soon, having done nothing, and its caller has the takes decided one
-- by one.
CREATE OR REPLACE FUNCTION weir.together$build(
    counters text[], mins bigint[], wants bigint[], firsts boolean[], floors bigint[],
    generation bigint, algorithm bigint, rates bigint[], either boolean, buckets bigint, max_delay bigint,
    lifetime bigint, since bigint, born bigint[], resume boolean)
RETURNS bigint[] LANGUAGE plpgsql VOLATILE SET lock_timeout = '25ms' AS $$
DECLARE
    is_window CONSTANT boolean := algorithm = 0 AND cardinality(rates) = 5;
    limited CONSTANT bigint := rates[1];
    is_bucket CONSTANT boolean := algorithm >= 3 AND cardinality(rates) = 5;
    swept CONSTANT bigint := 8; -- as in step
    opened bigint := 0; -- counters that step decided
    replies bigint[] := '{}';
    reply bigint[];
    made text[] := '{}'; -- counters that were new, in their order
    found int := 1;      -- of them, the next
    now bigint;          -- the time of their decision
    again text[] := '{}'; -- counters that begin another window, in their order
    taken bigint[];       -- what they are granted
    following int := 1;   -- of them, the next
    decided bigint;       -- the time of their decision
    units bigint;         -- what a counter of these two kinds is granted
    moment bigint;        -- the time of that
    number bigint;        -- of its window
    lasts bigint;         -- until that ends
BEGIN
    IF is_window THEN
        SELECT f.made, f.now INTO made, now FROM weir.fresh_windows$build(
            counters, mins, wants, firsts, floors, generation, rates, since, born, resume) f;
        IF cardinality(made) < cardinality(counters) THEN
            SELECT r.reopened, r.granted, r.now INTO again, taken, decided FROM weir.reopen_windows$build(
                counters, mins, wants, firsts, floors, generation, rates, since, born, resume) r;
        END IF;
    END IF;
    FOR i IN 1 .. cardinality(counters) LOOP
        reply := NULL;
        units := NULL;
        IF counters[i] = made[found] THEN
            units := least(wants[i], limited);
            moment := now;
            found := found + 1;
            opened := opened + 1;
        ELSIF counters[i] = again[following] THEN
            units := taken[following];
            moment := decided;
            following := following + 1;
        END IF;
        IF units IS NOT NULL THEN
            number := weir.index$build(rates, 1, moment);
            lasts := weir.start$build(rates, 1, number + 1) - moment;
            reply := ARRAY[0, 0, units, limited - units, limited, lasts, lasts, 0, 0, moment, 1] || rates || ARRAY[number, units];
        ELSIF is_window THEN
            reply := weir.steady_window$build(
                counters[i], mins[i], wants[i], firsts[i], generation, rates, since, floors[i], born, resume);
        ELSIF is_bucket THEN
            reply := weir.steady_bucket$build(counters[i], mins[i], wants[i], generation, algorithm, rates,
                max_delay, lifetime, since, floors[i], born, resume);
        END IF;
        IF reply IS NULL THEN
            reply := weir.step$build(counters[i], 0, mins[i], wants[i], '', '{}', 0, firsts[i],
                generation, algorithm, rates, either, buckets, max_delay, lifetime,
                '{}', '{}', 0, since, floors[i], born, resume, false, false);
            opened := opened + 1;
        END IF;
        replies := replies || reply;
    END LOOP;
    IF opened > 0 THEN -- some may be new
        PERFORM weir.sweep$build(weir.clock$build(), swept * opened);
    END IF;
    RETURN replies;
END
$$;

-- step.go and target.go.

CREATE OR REPLACE FUNCTION weir.behind$build(s weir.pools, h weir.holders, term bigint, applied bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN term <> s.term THEN term > s.term
        WHEN coalesce(h.generation, 0) = 0 THEN applied > s.generation
        ELSE applied > h.generation
    END
$$;

CREATE OR REPLACE FUNCTION weir.adopt$build(s weir.pools, p bigint[]) RETURNS weir.pools
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    was CONSTANT bigint[] := s.params;
BEGIN
    IF p = was OR p[9] < was[9] THEN
        RETURN s;
    END IF;
    s.params := p;
    IF weir.quarantined$build(s) AND p[8] > s.waited THEN
        s.until := s.until + p[8] - s.waited;
        s.waited := p[8];
    END IF;
    IF s.fleet = 0 THEN
        s.fleet := p[3];
    END IF;
    IF p[6] <> was[6] THEN
        SELECT coalesce(sum(weir.reserve$build(h, p[6])), 0) INTO s.reserved FROM weir.holders h WHERE h.pool = s.key;
    END IF;
    IF p[4] <> was[4] THEN
        s.opinion := weir.opinion$build(s, NULL, 0);
    END IF;
    RETURN weir.settle$build(s);
END
$$;

-- part splits a whole so that parts differ by one at most: the first have more.
CREATE OR REPLACE FUNCTION weir.part$build(whole bigint, parts bigint, i bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT whole / parts + CASE WHEN i < whole % parts THEN 1 ELSE 0 END
$$;

CREATE OR REPLACE FUNCTION weir.target$build(s weir.pools, h weir.holders) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    before bigint;
    others bigint;
BEGIN
    IF s.params[5] <> 1 THEN
        RETURN weir.part$build(s.fleet, s.holders, h.slot);
    ELSIF NOT h.hungry THEN
        RETURN h.in_flight + 1;
    END IF;
    SELECT count(*) FILTER (WHERE o.slot < h.slot), count(*) INTO before, others FROM weir.holders o
    WHERE o.pool = s.key AND o.hungry AND o.name <> h.name;
    RETURN greatest(1, weir.part$build(greatest(0, s.fleet - s.modest), others + 1, before));
END
$$;

-- observe returns what the fleet can have had in flight up to now.
CREATE OR REPLACE FUNCTION weir.observe$build(s weir.pools, h weir.holders, c bigint[]) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT s.reserved + CASE
        WHEN h.seq IS NULL THEN c[6]
        WHEN c[2] <= h.seq THEN 0
        ELSE greatest(0, CASE WHEN c[7] > h.peak THEN c[7] ELSE c[6] END - weir.reserve$build(h, s.params[6]))
    END
$$;

-- note is refresh and note: what the holder is by what it reports.
CREATE OR REPLACE FUNCTION weir.note$build(s weir.pools, h weir.holders, c bigint[]) RETURNS weir.holders
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    other CONSTANT boolean := c[3] <> s.term; -- it enforces a share of another memory
    until CONSTANT bigint := s.now + s.params[7];
BEGIN
    h.expires := greatest(h.expires, CASE WHEN other AND weir.quarantined$build(s) THEN least(until, s.until) ELSE until END);
    h.unacked := CASE
        WHEN other THEN greatest(h.unacked, c[5])
        WHEN h.generation > 0 AND c[4] >= h.generation THEN h.share
        WHEN h.generation = 0 THEN c[5]
        ELSE h.unacked
    END;
    h.seq := c[2];
    h.held := c[5];
    h.in_flight := c[6];
    h.peak := c[7];
    h.opinion := c[8];
    h.hungry := h.in_flight >= h.share;
    RETURN h;
END
$$;

-- issue is reallocate, of a holder that has a target and that s does not count: it gets
-- the number that comes after that of the newest share when its share changes.
CREATE OR REPLACE FUNCTION weir.issue$build(s weir.pools, h weir.holders, target bigint) RETURNS weir.holders
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    share CONSTANT bigint := greatest(0, least(target, s.fleet - s.reserved,
        CASE WHEN weir.quarantined$build(s) THEN h.held END));
BEGIN
    IF share <> h.share OR h.generation = 0 THEN
        h.generation := s.generation + 1;
        h.share := share;
        h.unacked := greatest(h.unacked, share);
    END IF;
    h.hungry := h.in_flight >= h.share;
    RETURN h;
END
$$;

-- put writes a holder, which may be new.
CREATE OR REPLACE FUNCTION weir.put$build(h weir.holders, joins boolean) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF joins THEN
        INSERT INTO weir.holders VALUES (h.*);
        RETURN;
    END IF;
    UPDATE weir.holders o SET
        seq = h.seq, generation = h.generation, share = h.share, unacked = h.unacked, held = h.held,
        in_flight = h.in_flight, peak = h.peak, opinion = h.opinion, expires = h.expires, hungry = h.hungry
    WHERE o.pool = h.pool AND o.name = h.name;
END
$$;

-- beat is Step. An old memory is followed by another.
--
-- p: min, max, initial, aggregate, allocation, handoff, ttl, quarantine, generation
-- c: op, seq, term, applied, held, in flight, peak, limit
-- The answer: seq, term, generation, share, ttl, limit, holders, granted, in flight,
-- occupied, bound, quarantined
CREATE OR REPLACE FUNCTION weir.beat$build(key text, p bigint[], c bigint[], who bytea) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    leave  CONSTANT boolean := c[1] = 2;
    now    bigint;
    s      weir.pools;
    h      weir.holders;
    fresh  boolean;          -- the command is later than all before
    joins  boolean := false;
    moved  boolean := false; -- an opinion, perhaps
    occupied bigint;
    allowed  bigint;
    target   bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('weir.pools'), hashtext(key));
    now := weir.clock$build();
    s := weir.recall$build(key, now, c[3], p[8]);
    SELECT * INTO h FROM weir.holders o WHERE o.pool = key AND o.name = who;
    IF weir.behind$build(s, h, c[3], c[4]) THEN
        s := weir.begin$build(key, now, greatest(c[3], s.term), greatest(p[8], s.params[8]));
        h := NULL;
    END IF;
    s := weir.adopt$build(s, p);
    s.now := greatest(s.now, now);
    fresh := coalesce(c[2] > h.seq, false);
    occupied := weir.observe$build(s, h, c);
    allowed := CASE WHEN weir.quarantined$build(s) THEN greatest(s.bound, occupied) ELSE s.bound END;

    IF s.next <= s.now AND s.holders > 0 THEN
        moved := true;
        s := weir.expire$build(s, CASE WHEN fresh THEN who END);
        SELECT o.slot INTO h.slot FROM weir.holders o WHERE o.pool = key AND o.name = who;
        IF NOT FOUND THEN
            h := NULL;
        END IF;
    END IF;
    IF leave AND fresh THEN
        moved := moved OR h.opinion > 0;
        s := weir.remove$build(s, h);
        h := NULL;
    ELSIF h.name IS NULL AND NOT leave THEN
        joins := true;
        h := (key, who, s.holders, 0, 0, 0, 0, 0, 0, c[7], 0, 0, true)::weir.holders;
        s.holders := s.holders + 1;
    END IF;
    fresh := joins OR fresh AND NOT leave;

    IF fresh THEN
        moved := moved OR h.opinion <> c[8];
        s := weir.enter$build(s, h, -1);
        h := weir.note$build(s, h, c);
        s := weir.enter$build(s, h, 1);
        s.next := CASE WHEN s.holders = 1 THEN h.expires ELSE least(s.next, h.expires) END;
    END IF;
    IF moved THEN
        s.opinion := weir.opinion$build(s, who, h.opinion);
    END IF;
    s := weir.settle$build(s);
    IF fresh THEN
        target := weir.target$build(s, h);
        s := weir.enter$build(s, h, -1);
        h := weir.issue$build(s, h, target);
        s.generation := greatest(s.generation, h.generation);
        s := weir.settle$build(weir.enter$build(s, h, 1));
        PERFORM weir.put$build(h, joins);
    END IF;
    PERFORM weir.keep$build(s);
    RETURN ARRAY[
        coalesce(h.seq, c[2]), s.term, coalesce(h.generation, 0), coalesce(h.share, 0), coalesce(h.expires - s.now, 0),
        s.fleet, s.holders, s.granted, s.in_flight, occupied, allowed, greatest(0, s.until - s.now)];
END
$$;

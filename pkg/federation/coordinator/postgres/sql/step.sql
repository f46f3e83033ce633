-- step.go, lease.go and release.go.

-- step is Step. An old memory is followed by another.
--
-- c: op, seq, index, term, granted, min, want, demand, weight, slice, born, list, met, unmet
-- usage: of each index, admitted, refused, complete
-- The answer: reason, seq, index, term, granted, slice, slice of this window, limit,
-- remaining, expires in, retry after, now
CREATE OR REPLACE FUNCTION weir.step$build(
    name bytea, terms bigint[], names bytea[], weight bigint[], nominal bigint[], kept bigint[], borrowing bigint[], meant bigint[],
    c bigint[], who bytea, holder bytea, usage bigint[]
) RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    p weir.params$build;
    s weir.budgets;
    o weir.others$build;
    t weir.budget_members;
    h weir.budget_holders;
    now     bigint;
    served  bigint;
    means   bigint;  -- what the member is meant to use without asking
    current boolean; -- the command names the open epoch
    stale   boolean; -- one with a higher seq was served
    forgot  boolean; -- memories before may have granted units of the open window
    had     bigint;
    minimum bigint;
    more    bigint;
    free    bigint;
    units   bigint;  -- that the holder is to have, NULL when its account stays
    reason  bigint;
    slice   bigint := 0;
    ends    bigint;
BEGIN
    PERFORM weir.enter$build(name);
    now := weir.clock$build();
    s := weir.recall$build(name, now, greatest(c[4], c[11]));
    p := (terms[1], terms[2], terms[3], names, weight, nominal, kept, borrowing, meant, array_position(names, who), c[12]);

    served := greatest(s.latest, s.index * s.length);
    ends := (s.index + 1) * s.length;
    IF now < served THEN
        RETURN ARRAY[6, 0, 0, 0, 0, c[10], 0, 0, 0, 0, served - now, now]; -- Behind
    ELSIF s.memory < s.term THEN
        RETURN ARRAY[6, 0, 0, 0, 0, c[10], 0, 0, 0, 0, p.length, now];
    ELSIF s.term > 0 AND s.length <> p.length AND now < ends THEN
        RETURN ARRAY[9, 0, 0, 0, 0, c[10], 0, 0, 0, 0, ends - now, now]; -- Mismatched
    END IF;

    s := weir.advance$build(s, p, now);
    o := weir.look$build(s, p, who);
    SELECT * INTO t FROM weir.budget_members x WHERE x.budget = name AND x.member = who;
    SELECT * INTO h FROM weir.budget_holders x WHERE x.budget = name AND x.member = who AND x.holder = holder;
    means := coalesce(meant[p.self], 0);
    current := c[3] = s.index AND c[4] = s.term;
    had := coalesce(h.granted, 0);
    stale := c[1] <> 3 AND c[2] <= coalesce(h.seq, 0);
    IF p.self IS NULL AND t.member IS NOT NULL OR p.self IS NOT NULL AND NOT stale THEN
        PERFORM weir.vouch$build(s, who, c);
    END IF;
    forgot := weir.forgot$build(s, p);

    IF p.self IS NULL THEN
        reason := 7; -- Unknown
        IF t.member IS NOT NULL THEN
            t := weir.attend$build(s, o, t, means, c, who);
            PERFORM weir.keep_tenants$build(s, who, c);
        END IF;
    ELSIF stale THEN
        reason := 4; -- Stale
    ELSE
        t := weir.attend$build(s, o, t, means, c, who);
        PERFORM weir.keep_tenants$build(s, who, c);
        IF c[9] > 0 THEN
            o.met[p.self] := c[13];
            o.unmet[p.self] := CASE WHEN c[14] > 0 THEN c[14] ELSE c[9] END;
        END IF;
        IF c[1] = 3 THEN
            reason := 1;
            PERFORM weir.keep_member$build(t);
            PERFORM weir.report$build(s, p, who, usage);
        ELSIF c[1] = 2 THEN
            reason := CASE WHEN current THEN 1 ELSE 11 END; -- Granted or Forfeited
            units := CASE WHEN current THEN least(h.granted, c[5]) ELSE h.granted END;
            units := CASE WHEN h.holder IS NOT NULL THEN units END;
        ELSE
            minimum := greatest(0, CASE WHEN current THEN c[5] ELSE 0 END + c[6] - had);
            more := greatest(0, CASE WHEN current THEN c[5] ELSE 0 END + c[7] - had);
            t.demand := greatest(t.granted + greatest(t.slice, t.next) + more, CASE WHEN c[8] > 0 THEN c[8] ELSE t.demand END);
            IF forgot THEN
                reason := 5; -- Amnesia
            ELSIF h.holder IS NULL AND t.holders >= 64 THEN
                reason := 8; -- Crowded
            ELSE
                free := greatest(0, weir.free$build(s, o, t, means));
                units := least(more, weir.room$build(s, p, o, t), greatest(minimum, weir.guide$build(free, o, t)));
                reason := CASE WHEN units >= minimum THEN 1 WHEN free < minimum THEN 2 ELSE 3 END; -- Granted, Exhausted, Kept
                units := had + CASE WHEN units >= minimum THEN units ELSE 0 END;
            END IF;
        END IF;
    END IF;

    IF units IS NOT NULL THEN
        IF h.holder IS NULL THEN
            h := (name, who, holder, 0, 0)::weir.budget_holders;
            t.holders := t.holders + 1;
        END IF;
        h.seq := c[2];
        h.granted := units;
        t.granted := t.granted + units - had;
        s.granted := s.granted + units - had;
        PERFORM weir.keep_holder$build(h);
    END IF;
    IF c[1] = 2 AND reason = 1 THEN
        t.demand := greatest(t.granted + greatest(t.slice, t.next), c[8]);
        t.before := least(t.before, t.demand);
    END IF;
    IF t.member IS NOT NULL THEN
        slice := least(means, t.next);
        IF means >= t.next AND t.next > 0 THEN
            t.told := s.index;
        END IF;
        PERFORM weir.keep_member$build(t);
    END IF;
    PERFORM weir.keep$build(s);
    ends := (s.index + 1) * s.length - s.latest;
    RETURN ARRAY[
        reason, coalesce(h.seq, c[2]), s.index, s.term, coalesce(h.granted, 0),
        slice, CASE WHEN t.member IS NULL OR forgot THEN 0 ELSE t.slice END, s.units,
        weir.room$build(s, p, o, t), ends, CASE WHEN reason IN (1, 4) THEN 0 ELSE ends END, s.latest];
END
$$;

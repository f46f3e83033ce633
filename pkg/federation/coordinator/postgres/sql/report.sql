-- report.go.

-- count replaces what a member reported before of a window, but never a complete report
-- by an incomplete one.
CREATE OR REPLACE FUNCTION weir.count$build(s weir.budgets, who bytea, u bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    w weir.budget_closed;
    i int;
BEGIN
    SELECT * INTO w FROM weir.budget_closed o WHERE o.budget = s.budget AND o.index = u[1];
    i := array_position(w.members, who);
    IF i IS NULL THEN
        i := cardinality(w.members) + 1;
        w.members[i] := who;
        w.had[i] := 0;
        w.complete[i] := false;
    END IF;
    IF u[4] = 0 AND w.complete[i] THEN
        RETURN;
    END IF;
    w.admitted[i] := u[2];
    w.refused[i] := u[3];
    w.reported[i] := true;
    w.complete[i] := u[4] = 1;
    UPDATE weir.budget_closed o SET
        members = w.members, had = w.had, admitted = w.admitted, refused = w.refused,
        reported = w.reported, complete = w.complete
    WHERE o.budget = s.budget AND o.index = u[1];
END
$$;

-- report notes what a member counted. A window that is over and in which nobody asked
-- for anything was not noticed.
CREATE OR REPLACE FUNCTION weir.report$build(s weir.budgets, p weir.params$build, who bytea, usage bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    u bigint[];
BEGIN
    IF cardinality(usage) = 0 THEN
        RETURN; -- it has no dimension to go along
    END IF;
    FOREACH u SLICE 1 IN ARRAY usage LOOP
        IF NOT EXISTS (SELECT FROM weir.budget_closed o WHERE o.budget = s.budget AND o.index = u[1]) THEN
            CONTINUE WHEN u[1] >= s.index OR u[1] < s.index - 8 OR u[1] * s.length < s.since;
            CONTINUE WHEN (SELECT count(*) FROM weir.budget_closed o WHERE o.budget = s.budget AND o.index > u[1]) >= 8;
            PERFORM weir.over$build(s, p, u[1], 0);
        END IF;
        PERFORM weir.count$build(s, who, u);
    END LOOP;
END
$$;

-- slices.go and attend of standing.go.

CREATE OR REPLACE FUNCTION weir.look$build(s weir.budgets, p weir.params$build, who bytea) RETURNS weir.others$build
LANGUAGE plpgsql STABLE AS $$
DECLARE
    o weir.others$build;
BEGIN
    SELECT coalesce(sum(greatest(t.slice, t.next)), 0), count(*) FILTER (WHERE t.demand > 0 OR t.before > 0)
    INTO o.sliced, o.active
    FROM weir.budget_members t WHERE t.budget = s.budget AND t.member <> who;

    SELECT array_agg(coalesce(t.granted + greatest(t.slice, t.next), n.meant) ORDER BY n.place),
           array_agg(coalesce(greatest(t.demand, t.before), 0) ORDER BY n.place),
           array_agg(CASE WHEN t.weight > 0 THEN t.weight ELSE n.weight END ORDER BY n.place),
           array_agg(coalesce(u.met, 0) ORDER BY n.place),
           array_agg(coalesce(u.unmet, CASE WHEN t.weight > 0 THEN t.weight ELSE n.weight END) ORDER BY n.place),
           o.sliced + coalesce(sum(n.meant) FILTER (WHERE t.member IS NULL AND n.name <> who), 0)
    INTO o.has, o.wants, o.weight, o.met, o.unmet, o.sliced
    FROM unnest(p.names, p.weight, p.meant) WITH ORDINALITY AS n (name, weight, meant, place)
    LEFT JOIN weir.budget_members t ON t.budget = s.budget AND t.member = n.name
    LEFT JOIN weir.budget_tenants u ON u.budget = s.budget AND u.member = t.member AND u.weight = t.weight;
    RETURN o;
END
$$;

-- free returns what is not taken of the open window; it may be less than 0.
CREATE OR REPLACE FUNCTION weir.free$build(s weir.budgets, o weir.others$build, t weir.budget_members, meant bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT s.units - s.before - s.granted - o.sliced - coalesce(greatest(t.slice, t.next), meant)
$$;

-- attend returns the standing of the member that sent the command.
CREATE OR REPLACE FUNCTION weir.attend$build(
    s weir.budgets, o weir.others$build, t weir.budget_members, meant bigint, c bigint[], who bytea
) RETURNS weir.budget_members LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    slice bigint;
BEGIN
    IF t.member IS NULL THEN -- NoSlice says nothing
        slice := greatest(least(CASE WHEN c[10] < 1000000000000 THEN c[10] ELSE 0 END, s.units), least(meant, greatest(0, weir.free$build(s, o, t, meant) + meant)));
        t := (s.budget, who, 0, 0, 0, 0, slice, slice, s.index, 0, 0)::weir.budget_members;
    END IF;
    t.seen := s.latest;
    IF c[9] > 0 THEN
        t.weight := c[9];
    END IF;
    IF meant > t.next THEN
        t.next := greatest(t.next, least(meant, greatest(t.slice, t.next) + greatest(0, weir.free$build(s, o, t, meant))));
    ELSIF meant < t.next AND c[3] > t.told THEN
        t.next := greatest(meant, least(t.next, c[10]));
    END IF;
    RETURN t;
END
$$;

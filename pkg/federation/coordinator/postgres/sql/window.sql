-- window.go.

-- over remembers a window that is over. Memories before granted the units earlier of
-- it, and this one what the accounts add up to if it is the one that was open. No more
-- than the latest eight are kept.
CREATE OR REPLACE FUNCTION weir.over$build(s weir.budgets, p weir.params$build, at bigint, earlier bigint) RETURNS void
LANGUAGE sql VOLATILE AS $$
    INSERT INTO weir.budget_closed
    SELECT s.budget, at, s.units, earlier + coalesce(sum(u.had), 0), coalesce(array_agg(u.member), '{}'),
           coalesce(array_agg(u.had), '{}'), array_fill(0::bigint, ARRAY[count(*)::int]), array_fill(0::bigint, ARRAY[count(*)::int]),
           array_fill(false, ARRAY[count(*)::int]), array_fill(false, ARRAY[count(*)::int])
    FROM (
        SELECT t.member, t.slice + CASE WHEN at = s.index THEN t.granted ELSE 0 END AS had
        FROM weir.budget_members t WHERE t.budget = s.budget
        UNION ALL
        SELECT n.name, n.meant FROM unnest(p.names, p.meant) AS n (name, meant)
        WHERE n.meant > 0 AND NOT EXISTS (SELECT FROM weir.budget_members t WHERE t.budget = s.budget AND t.member = n.name)
    ) AS u;
    DELETE FROM weir.budget_closed o WHERE o.budget = s.budget AND o.index < (
        SELECT i.index FROM weir.budget_closed i WHERE i.budget = s.budget ORDER BY i.index DESC OFFSET 7 LIMIT 1);
$$;

-- open ends the window before and begins another, with nothing granted yet.
CREATE OR REPLACE FUNCTION weir.open$build(s weir.budgets, p weir.params$build, at bigint) RETURNS weir.budgets
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    same      CONSTANT boolean := s.length = p.length;
    following CONSTANT boolean := at = s.index + 1;
BEGIN
    IF NOT same THEN
        DELETE FROM weir.budget_closed o WHERE o.budget = s.budget;
    ELSIF NOT weir.forgot$build(s, p) THEN
        PERFORM weir.over$build(s, p, s.index, s.before);
    END IF;
    DELETE FROM weir.budget_holders o WHERE o.budget = s.budget;
    DELETE FROM weir.budget_vouches v WHERE v.budget = s.budget;
    DELETE FROM weir.budget_members t
    WHERE t.budget = s.budget AND t.slice = 0 AND t.next = 0 AND t.member <> ALL (p.names);
    UPDATE weir.budget_members t SET
        before = CASE WHEN same AND following THEN t.demand ELSE 0 END, demand = 0, slice = t.next,
        told = CASE WHEN same THEN t.told ELSE at END, granted = 0, holders = 0
    WHERE t.budget = s.budget;
    s.length := p.length;
    s.index := at;
    s.units := p.units;
    s.before := 0;
    s.granted := 0;
    RETURN s;
END
$$;

-- advance opens the window of now for the memory that s has.
CREATE OR REPLACE FUNCTION weir.advance$build(s weir.budgets, p weir.params$build, now bigint) RETURNS weir.budgets
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    at    CONSTANT bigint  := now / p.length;
    later CONSTANT boolean := s.memory > s.term;
BEGIN
    IF s.length <> p.length OR at <> s.index THEN
        s := weir.open$build(s, p, at);
    ELSIF later THEN
        s.before := s.before + s.granted;
        s.granted := 0;
        DELETE FROM weir.budget_holders o WHERE o.budget = s.budget;
        DELETE FROM weir.budget_vouches v WHERE v.budget = s.budget;
        UPDATE weir.budget_members t SET granted = 0, holders = 0 WHERE t.budget = s.budget;
    END IF;
    IF later THEN
        UPDATE weir.budget_members t SET told = s.index WHERE t.budget = s.budget;
    END IF;
    s.term := s.memory;
    s.latest := now;
    s.units := least(s.units, p.units);
    RETURN s;
END
$$;

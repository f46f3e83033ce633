-- guide returns the most that one lease should take, as lease.go says.
CREATE OR REPLACE FUNCTION weir.guide$build(free bigint, o weir.others$build, t weir.budget_members) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT (free + 2 * active - 1) / (2 * active)
    FROM (SELECT o.active + CASE WHEN t.demand > 0 OR t.before > 0 THEN 1 ELSE 0 END) AS n (active)
$$;

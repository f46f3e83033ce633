-- vouch.go. Versions before leave vouches behind, so each has the term it is for.

-- vouch notes whether the member that sent the command vouches for the memory, while that
-- matters.
CREATE OR REPLACE FUNCTION weir.vouch$build(s weir.budgets, who bytea, c bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF s.index * s.length >= s.since THEN
        RETURN;
    END IF;
    DELETE FROM weir.budget_vouches v WHERE v.budget = s.budget AND v.member = who;
    IF c[12] <> 0 AND c[11] = s.memory THEN
        INSERT INTO weir.budget_vouches VALUES (s.budget, who, s.memory, c[12]);
    END IF;
END
$$;

-- forgot reports whether the open window began before the memory did, unless every member
-- vouches for the memory, and means the same ones as the one that sent the command.
CREATE OR REPLACE FUNCTION weir.forgot$build(s weir.budgets, p weir.params$build) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF s.index * s.length >= s.since THEN
        RETURN false;
    END IF;
    RETURN EXISTS (
        SELECT FROM unnest(p.names) AS n (name)
        WHERE NOT EXISTS (
            SELECT FROM weir.budget_vouches v
            WHERE v.budget = s.budget AND v.member = n.name AND v.term = s.memory AND v.list = p.list));
END
$$;

-- State, and how it is kept.

-- enter waits until nobody else is about the budget.
CREATE OR REPLACE FUNCTION weir.enter$build(name bytea) RETURNS void LANGUAGE sql VOLATILE AS $$
    SELECT pg_advisory_xact_lock(hashtext('weir.budgets'), hashtext(encode(name, 'hex')))
$$;

CREATE OR REPLACE FUNCTION weir.discard$build(name bytea) RETURNS void LANGUAGE sql VOLATILE AS $$
    DELETE FROM weir.budget_closed o WHERE o.budget = name;
    DELETE FROM weir.budget_holders o WHERE o.budget = name;
    DELETE FROM weir.budget_vouches v WHERE v.budget = name;
    DELETE FROM weir.budget_tenants o WHERE o.budget = name;
    DELETE FROM weir.budget_members o WHERE o.budget = name;
    DELETE FROM weir.budgets o WHERE o.budget = name;
$$;

-- sweep drops budgets that nobody asked for in twice the longest window.
CREATE OR REPLACE FUNCTION weir.sweep$build(now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    ended CONSTANT bigint := now - 2 * 744 * 3600000000;
    name  bytea;
BEGIN
    FOR name IN SELECT o.budget FROM weir.budgets o WHERE o.latest < ended LIMIT 100 LOOP
        CONTINUE WHEN NOT pg_try_advisory_xact_lock(hashtext('weir.budgets'), hashtext(encode(name, 'hex')));
        CONTINUE WHEN NOT EXISTS (SELECT FROM weir.budgets o WHERE o.budget = name AND o.latest < ended);
        PERFORM weir.discard$build(name);
    END LOOP;
END
$$;

-- recall returns what is remembered. A memory begins for a command that finds none,
-- that of another start of the server, a copy, or one that is older than what the
-- holder or its cluster has seen: it may lack grants, made up to this very instant.
CREATE OR REPLACE FUNCTION weir.recall$build(name bytea, now bigint, above bigint) RETURNS weir.budgets
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    s weir.budgets;
BEGIN
    SELECT o.budget, o.server, CASE WHEN o.writer = o.xmin THEN o.writer END, o.memory, o.since, o.length, o.index, o.term,
           o.units, o.latest, o.before, o.granted
    INTO s FROM weir.budgets o WHERE o.budget = name;
    IF NOT FOUND THEN
        PERFORM weir.discard$build(name);
        PERFORM weir.sweep$build(now);
        s := (name, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0)::weir.budgets;
    ELSIF s.server = pg_postmaster_start_time() AND s.writer IS NOT NULL AND above <= s.memory THEN
        RETURN s;
    END IF;
    s.server := pg_postmaster_start_time();
    s.memory := least(greatest(now, 1 + greatest(s.memory, s.term, above)), 9007199254740991);
    s.since := greatest(now, s.latest) + 1;
    RETURN s;
END
$$;

CREATE OR REPLACE FUNCTION weir.keep$build(s weir.budgets) RETURNS void LANGUAGE sql VOLATILE AS $$
    INSERT INTO weir.budgets AS o VALUES (
        s.budget, s.server, pg_current_xact_id()::xid, s.memory, s.since, s.length, s.index, s.term,
        s.units, s.latest, s.before, s.granted)
    ON CONFLICT (budget) DO UPDATE SET
        server = excluded.server, writer = excluded.writer, memory = excluded.memory, since = excluded.since,
        length = excluded.length, index = excluded.index, term = excluded.term, units = excluded.units,
        latest = excluded.latest, before = excluded.before, granted = excluded.granted
$$;

-- keep_member writes a standing, which may be new.
CREATE OR REPLACE FUNCTION weir.keep_member$build(t weir.budget_members) RETURNS void LANGUAGE sql VOLATILE AS $$
    INSERT INTO weir.budget_members AS o VALUES (t.*)
    ON CONFLICT (budget, member) DO UPDATE SET
        seen = excluded.seen, weight = excluded.weight, demand = excluded.demand, before = excluded.before,
        slice = excluded.slice, next = excluded.next, told = excluded.told,
        granted = excluded.granted, holders = excluded.holders
$$;

-- keep_holder writes an account, which may be new.
CREATE OR REPLACE FUNCTION weir.keep_holder$build(h weir.budget_holders) RETURNS void LANGUAGE sql VOLATILE AS $$
    INSERT INTO weir.budget_holders AS o VALUES (h.*)
    ON CONFLICT (budget, member, holder) DO UPDATE SET seq = excluded.seq, granted = excluded.granted
$$;

-- keep_tenants writes what the member said of its tenants with its weight, if it said one.
CREATE OR REPLACE FUNCTION weir.keep_tenants$build(s weir.budgets, who bytea, c bigint[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF c[9] > 0 AND c[14] > 0 THEN
        INSERT INTO weir.budget_tenants AS o VALUES (s.budget, who, c[9], c[13], c[14])
        ON CONFLICT (budget, member) DO UPDATE SET weight = excluded.weight, met = excluded.met, unmet = excluded.unmet;
    ELSIF c[9] > 0 THEN
        DELETE FROM weir.budget_tenants o WHERE o.budget = s.budget AND o.member = who;
    END IF;
END
$$;

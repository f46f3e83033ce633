-- fairness.go.

-- fair reports whether the window of the state is split over tenants.
CREATE OR REPLACE FUNCTION weir.fair$build(s weir.counters, p weir.params$build) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT p.weight > 0 AND cardinality(s.index) = 1 AND s.algorithm = 0 $$;

-- used_by returns what was granted to the tenant of the open window, NULL when it did not
-- ask in it: -1 stands in the place of what it was granted, Lately.
CREATE OR REPLACE FUNCTION weir.used_by$build(s weir.counters, tenant text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT nullif(s.shares[array_position(s.tenants, tenant)], -1) $$;

-- sharing returns whether the declared tenant shares the window before it asks.
CREATE OR REPLACE FUNCTION weir.sharing$build(s weir.counters, p weir.params$build, tenant text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT p.reserve OR tenant = ANY (s.tenants) $$;

-- lately notes of the tenants of the window before those that are declared.
CREATE OR REPLACE FUNCTION weir.lately$build(s weir.counters, p weir.params$build) RETURNS weir.counters
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    tenants CONSTANT text[] := s.tenants;
    shares CONSTANT bigint[] := s.shares;
BEGIN
    s.tenants := '{}';
    s.shares := '{}';
    FOR i IN 1 .. cardinality(tenants) LOOP
        IF shares[i] <> -1 AND NOT p.reserve AND tenants[i] = ANY (p.tenants) THEN
            s.tenants := s.tenants || tenants[i];
            s.shares := s.shares || -1::bigint;
        END IF;
    END LOOP;
    RETURN s;
END
$$;

-- others returns how many tenants of the open window are not declared.
CREATE OR REPLACE FUNCTION weir.others$build(s weir.counters, p weir.params$build) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    n bigint := 0;
BEGIN
    FOR i IN 1 .. cardinality(s.tenants) LOOP
        n := n + (s.shares[i] <> -1 AND s.tenants[i] <> ALL (p.tenants))::int;
    END LOOP;
    RETURN n;
END
$$;

-- account returns the name under which the tenant is counted.
CREATE OR REPLACE FUNCTION weir.account$build(s weir.counters, p weir.params$build, tenant text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    max_tenants CONSTANT bigint := 1024;
BEGIN
    IF tenant = ANY (p.tenants) OR weir.used_by$build(s, tenant) IS NOT NULL OR weir.others$build(s, p) < max_tenants THEN
        RETURN tenant;
    END IF;
    RETURN '*';
END
$$;

-- whole returns the sum of the weights that share the window once the tenant has
-- asked.
CREATE OR REPLACE FUNCTION weir.whole$build(s weir.counters, p weir.params$build, tenant text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    others bigint := weir.others$build(s, p);
    total bigint := 0;
BEGIN
    FOR i IN 1 .. cardinality(p.weights) LOOP
        IF p.tenants[i] = tenant OR weir.sharing$build(s, p, p.tenants[i]) THEN
            total := total + p.weights[i];
        END IF;
    END LOOP;
    IF tenant <> ALL (p.tenants) AND weir.used_by$build(s, tenant) IS NULL THEN
        others := others + 1;
    END IF;
    RETURN total + others * p.weight;
END
$$;

-- share returns what was granted to the tenant and what it can still get.
CREATE OR REPLACE FUNCTION weir.share$build(
    s weir.counters, p weir.params$build, asks text, amount bigint, OUT used bigint, OUT room bigint)
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    most CONSTANT bigint := s.rates[1];
    free CONSTANT bigint := greatest(0, most - s.used[1]);
    tenant CONSTANT text := weir.account$build(s, p, asks);
    whole CONSTANT bigint := weir.whole$build(s, p, tenant);
    other CONSTANT bigint := p.weight * most / whole;
    guarantee bigint := other;
    kept bigint := 0;
    lent bigint := 0;
    due bigint;
    part bigint;
BEGIN
    FOR i IN 1 .. cardinality(p.tenants) LOOP
        part := p.weights[i] * most / whole;
        IF p.tenants[i] = tenant THEN
            guarantee := part;
        ELSIF weir.sharing$build(s, p, p.tenants[i]) THEN
            kept := kept + greatest(0, part - coalesce(weir.used_by$build(s, p.tenants[i]), 0));
        END IF;
    END LOOP;
    used := 0;
    FOR i IN 1 .. cardinality(s.tenants) LOOP
        IF s.shares[i] = -1 THEN
            CONTINUE;
        ELSIF s.tenants[i] = tenant THEN
            used := s.shares[i];
        ELSIF s.tenants[i] <> ALL (p.tenants) THEN
            lent := lent + greatest(0, other - s.shares[i]);
        END IF;
    END LOOP;
    due := least(greatest(0, guarantee - used), greatest(0, free - kept));
    room := least(greatest(due, free - kept - lent), greatest(0, guarantee + amount - used));
END
$$;

-- never_fits reports an amount that the tenant cannot get even when it is the first
-- to ask in a window.
CREATE OR REPLACE FUNCTION weir.never_fits$build(p weir.params$build, tenant text, amount bigint) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    whole bigint := CASE WHEN tenant = ANY (p.tenants) THEN 0 ELSE p.weight END;
    kept bigint := 0;
BEGIN
    IF NOT p.reserve THEN
        RETURN amount > p.rates[1];
    END IF;
    FOR i IN 1 .. cardinality(p.weights) LOOP
        whole := whole + p.weights[i];
    END LOOP;
    FOR i IN 1 .. cardinality(p.tenants) LOOP
        IF p.tenants[i] <> tenant THEN
            kept := kept + p.weights[i] * p.rates[1] / whole;
        END IF;
    END LOOP;
    RETURN amount > p.rates[1] - kept;
END
$$;

-- grant adds to what the tenant was granted, and notes one that was granted nothing.
CREATE OR REPLACE FUNCTION weir.grant$build(s weir.counters, tenant text, amount bigint) RETURNS weir.counters
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    at CONSTANT int := array_position(s.tenants, tenant);
BEGIN
    IF at IS NULL THEN
        s.tenants := s.tenants || tenant;
        s.shares := s.shares || amount;
    ELSE
        s.shares[at] := greatest(0, s.shares[at]) + amount;
    END IF;
    RETURN s;
END
$$;

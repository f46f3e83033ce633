-- fairness.go.

-- fair reports whether the window of the state is split over tenants.
CREATE OR REPLACE FUNCTION weir.fair$build(s weir.counters, p weir.params$build) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT p.weight > 0 AND cardinality(s.index) = 1 AND s.algorithm = 0 $$;

-- others returns how many of the tenants are not declared.
CREATE OR REPLACE FUNCTION weir.others$build(p weir.params$build, tenants text[]) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    n bigint := 0;
BEGIN
    FOR i IN 1 .. cardinality(tenants) LOOP
        n := n + (tenants[i] <> ALL (p.tenants))::int;
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
    IF tenant = ANY (p.tenants) OR tenant = ANY (s.tenants) OR weir.others$build(p, s.tenants) < max_tenants THEN
        RETURN tenant;
    END IF;
    RETURN '*';
END
$$;

-- whole returns the sum of the weights that share the window once the tenant has
-- asked.
CREATE OR REPLACE FUNCTION weir.whole$build(p weir.params$build, tenants text[], tenant text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    others bigint := weir.others$build(p, tenants);
    total bigint := 0;
BEGIN
    FOR i IN 1 .. cardinality(p.weights) LOOP
        total := total + p.weights[i];
    END LOOP;
    IF tenant <> ALL (p.tenants) AND tenant <> ALL (tenants) THEN
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
    whole CONSTANT bigint := weir.whole$build(p, s.tenants, tenant);
    other CONSTANT bigint := p.weight * most / whole;
    guarantee bigint := other;
    kept bigint := 0;
    lent bigint := 0;
    due bigint;
    part bigint;
    at int;
BEGIN
    FOR i IN 1 .. cardinality(p.tenants) LOOP
        part := p.weights[i] * most / whole;
        IF p.tenants[i] = tenant THEN
            guarantee := part;
        ELSE
            at := array_position(s.tenants, p.tenants[i]);
            kept := kept + CASE WHEN at IS NULL THEN part ELSE greatest(0, part - s.shares[at]) END;
        END IF;
    END LOOP;
    used := 0;
    FOR i IN 1 .. cardinality(s.tenants) LOOP
        IF s.tenants[i] = tenant THEN
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
    whole CONSTANT bigint := weir.whole$build(p, '{}', tenant);
    kept bigint := 0;
BEGIN
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
        s.shares[at] := s.shares[at] + amount;
    END IF;
    RETURN s;
END
$$;

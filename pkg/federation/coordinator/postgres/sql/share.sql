-- share.go and fill.go.

-- part returns the weight's part of a whole, rounded down as part of fill.go does it.
CREATE OR REPLACE FUNCTION weir.part$build(whole bigint, weight bigint, weights bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT whole / weights * weight + whole % weights * weight / weights
$$;

-- divided returns the share of one of those that are not settled, in the rest that
-- the others leave: nominals and so on are the sums over those that are not settled.
CREATE OR REPLACE FUNCTION weir.divided$build(
    rest bigint, nominal bigint, weight bigint, met bigint, unmet bigint, nominals bigint, weights bigint, mets bigint, unmets bigint
) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN rest < nominals THEN least(nominal, weir.part$build(rest, weight, weights))
        WHEN rest - nominals < mets THEN nominal + weir.part$build(rest - nominals, weight, weights)
        ELSE nominal + met + weir.part$build(rest - nominals - mets, unmet, unmets)
    END
$$;

-- fill returns what each gets of a whole. It ends when a round settles nobody: those
-- that would follow find the same.
CREATE OR REPLACE FUNCTION weir.fill$build(
    whole bigint, nominal bigint[], weight bigint[], met bigint[], unmet bigint[], low bigint[], high bigint[]
) RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    n       CONSTANT int := cardinality(low);
    gets    bigint[]  := low;
    share   bigint[]  := low;
    settled boolean[] := array_fill(false, ARRAY[n]);
    moved   boolean   := true;
    rest    bigint;
    nominals bigint;
    weights bigint;
    mets    bigint;
    unmets  bigint;
    beyond  bigint;
BEGIN
    WHILE moved LOOP
        rest := whole;
        nominals := 0;
        weights := 0;
        mets := 0;
        unmets := 0;
        FOR i IN 1..n LOOP
            IF settled[i] THEN
                rest := rest - gets[i];
            ELSE
                nominals := nominals + nominal[i];
                weights := weights + weight[i];
                mets := mets + met[i];
                unmets := unmets + unmet[i];
            END IF;
        END LOOP;
        rest := greatest(0, rest);
        beyond := -rest;
        FOR i IN 1..n LOOP
            CONTINUE WHEN settled[i];
            share[i] := weir.divided$build(rest, nominal[i], weight[i], met[i], unmet[i], nominals, weights, mets, unmets);
            gets[i] := greatest(low[i], least(high[i], share[i]));
            beyond := beyond + gets[i];
        END LOOP;
        moved := false;
        FOR i IN 1..n LOOP
            CONTINUE WHEN settled[i] OR NOT (beyond > 0 AND gets[i] > share[i] OR beyond <= 0 AND gets[i] < share[i]);
            settled[i] := true;
            moved := true;
        END LOOP;
    END LOOP;
    RETURN gets;
END
$$;

-- room returns how much more the member that sent the command may be granted now.
CREATE OR REPLACE FUNCTION weir.room$build(s weir.budgets, p weir.params$build, o weir.others$build, t weir.budget_members)
RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    self    CONSTANT bigint := p.self;
    free    bigint;
    whole   bigint;
    own     bigint;
    nominals bigint;
    weights bigint;
    mets    bigint;
    unmets  bigint;
    low     bigint[];
    high    bigint[];
    gets    bigint[];
BEGIN
    IF self IS NULL THEN
        RETURN 0;
    END IF;
    own := t.granted + greatest(t.slice, t.next);
    o.has[self] := own;
    o.wants[self] := greatest(t.demand, t.before);
    o.weight[self] := CASE WHEN t.weight > 0 THEN t.weight ELSE p.weight[self] END;
    free := weir.free$build(s, o, t, 0);
    SELECT free + sum(n.has), sum(n.nominal), sum(n.weight), sum(n.met), sum(n.unmet) INTO whole, nominals, weights, mets, unmets
    FROM unnest(o.has, p.nominal, o.weight, o.met, o.unmet) AS n (has, nominal, weight, met, unmet);
    IF p.strategy = 2 THEN -- Static
        free := least(free, weir.divided$build(
            greatest(0, whole), p.nominal[self], o.weight[self], o.met[self], o.unmet[self], nominals, weights, mets, unmets) - own);
    ELSE
        SELECT array_agg(CASE WHEN nominals <= whole THEN greatest(n.has, n.kept) ELSE n.has END ORDER BY n.place),
               array_agg(greatest(n.has, n.kept,
                   CASE WHEN n.borrowing < 0 THEN n.wants ELSE least(n.wants, n.nominal + n.borrowing) END) ORDER BY n.place)
        INTO low, high
        FROM unnest(o.has, o.wants, p.kept, p.nominal, p.borrowing)
        WITH ORDINALITY AS n (has, wants, kept, nominal, borrowing, place);
        gets := low;
        IF p.strategy = 0 THEN -- FairShare
            high[self] := greatest(own, whole);
            gets := weir.fill$build(whole, p.nominal, o.weight, o.met, o.unmet, low, high);
        END IF;
        SELECT free - coalesce(sum(n.gets - n.has), 0) INTO free
        FROM unnest(gets, o.has) WITH ORDINALITY AS n (gets, has, place) WHERE n.place <> self;
    END IF;
    IF p.borrowing[self] >= 0 THEN
        free := least(free, p.nominal[self] + p.borrowing[self] - own);
    END IF;
    RETURN greatest(0, free);
END
$$;

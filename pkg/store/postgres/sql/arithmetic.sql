-- rate.go, calendar.go and algorithm.go. Functions of one expression in SQL are
-- inlined where they are called. Rate number i of a list is at 5i-4 to 5i.

CREATE OR REPLACE FUNCTION weir.floor_div$build(a bigint, b bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT a / b - (a % b < 0)::int $$;

CREATE OR REPLACE FUNCTION weir.ceil_div$build(a bigint, b bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT a / b + (a % b > 0)::int $$;

-- machine returns 0 for windows, 1 for sliding sums and 2 for buckets.
CREATE OR REPLACE FUNCTION weir.machine$build(algorithm bigint) RETURNS int
LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN algorithm = 0 THEN 0 WHEN algorithm <= 2 THEN 1 ELSE 2 END $$;

CREATE OR REPLACE FUNCTION weir.month_of$build(day bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    era bigint;
    of_era bigint;
    year bigint;
    of_year bigint;
BEGIN
    day := day + 719468;
    era := weir.floor_div$build(day, 146097);
    of_era := day - era * 146097;
    year := (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    of_year := of_era - (365 * year + year / 4 - year / 100);
    RETURN (era * 400 + year) * 12 + (5 * of_year + 2) / 153 + 2;
END
$$;

CREATE OR REPLACE FUNCTION weir.first_day$build(month bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    year bigint;
    of_year bigint;
    era bigint;
    of_era bigint;
BEGIN
    month := month - 2;
    year := weir.floor_div$build(month, 12);
    of_year := month - 12 * year;
    era := weir.floor_div$build(year, 400);
    of_era := year - era * 400;
    RETURN era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * of_year + 2) / 5 - 719468;
END
$$;

-- index returns the number of the window of rate number i that contains now.
CREATE OR REPLACE FUNCTION weir.index$build(rates bigint[], i int, now bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN rates[5 * i] = 1
        THEN weir.month_of$build(weir.floor_div$build(now + rates[5 * i - 1], 86400000000))
        ELSE weir.floor_div$build(now + rates[5 * i - 1], rates[5 * i - 3]) END
$$;

-- start returns the first instant of a window of rate number i.
CREATE OR REPLACE FUNCTION weir.start$build(rates bigint[], i int, index bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN rates[5 * i] = 1
        THEN weir.first_day$build(index) * 86400000000 - rates[5 * i - 1]
        ELSE index * rates[5 * i - 3] - rates[5 * i - 1] END
$$;

-- cost and drain are what Rate.pace returns.
CREATE OR REPLACE FUNCTION weir.cost$build(rates bigint[], i int) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT rates[5 * i - 3] / gcd(rates[5 * i - 4], rates[5 * i - 3]) $$;

CREATE OR REPLACE FUNCTION weir.drain$build(rates bigint[], i int) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT rates[5 * i - 4] / gcd(rates[5 * i - 4], rates[5 * i - 3]) $$;

-- same_windows reports whether rate number i of a and rate number j of b have the
-- same windows.
CREATE OR REPLACE FUNCTION weir.same_windows$build(a bigint[], i int, b bigint[], j int) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT a[5 * i - 3] = b[5 * j - 3] AND a[5 * i - 1] = b[5 * j - 1] AND a[5 * i] = b[5 * j]
$$;

-- find returns which meter of s has the windows of rate number i, 0 when none has.
CREATE OR REPLACE FUNCTION weir.find$build(s weir.counters, rates bigint[], i int) RETURNS int
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    FOR j IN 1 .. cardinality(s.index) LOOP
        IF weir.same_windows$build(s.rates, j, rates, i) THEN
            RETURN j;
        END IF;
    END LOOP;
    RETURN 0;
END
$$;

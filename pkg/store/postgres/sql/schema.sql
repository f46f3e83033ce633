-- The tables that all builds share. Being unlogged makes the guard safe: whenever
-- Postgres recovers (a crash, a promotion, a restored backup or snapshot) it empties
-- them, so counts that may lack the last grants are never read again. They also cost
-- no write-ahead log.

-- limiter.State of each counter. The arrays have one element for each meter.
CREATE UNLOGGED TABLE IF NOT EXISTS weir.counters (
    key        text COLLATE "C" PRIMARY KEY,
    keep_until bigint   NOT NULL DEFAULT 0,    -- until when Step needs the state
    generation bigint   NOT NULL DEFAULT 0,
    algorithm  smallint NOT NULL DEFAULT 0,
    expires    bigint   NOT NULL DEFAULT 0,
    began      bigint   NOT NULL DEFAULT 0,
    pulse      bigint   NOT NULL DEFAULT 0,
    asked      bigint   NOT NULL DEFAULT 0,
    before     bigint   NOT NULL DEFAULT 0,
    rates      bigint[] NOT NULL DEFAULT '{}', -- limit, window, burst, offset, monthly (0 or 1)
    index      bigint[] NOT NULL DEFAULT '{}',
    used       bigint[] NOT NULL DEFAULT '{}', -- of a sliding sum what its log adds up to
    entries    bigint[] NOT NULL DEFAULT '{}', -- of a sliding sum how many entries it has in log
    log        bigint[] NOT NULL DEFAULT '{}', -- of each entry at and count
    tenants    text[]   NOT NULL DEFAULT '{}', -- that were granted of the open window, in the order they came
    shares     bigint[] NOT NULL DEFAULT '{}', -- and how much
    -- When count.sql may go on with the row, see ease; terms is NULL when it may not.
    terms      text COLLATE "C", -- what the caller has to ask under
    starts     timestamptz,      -- from when on
    ends       timestamptz,      -- and until when
    server     timestamptz,      -- the start of the server that wrote it
    writer     xid               -- the transaction that wrote it: a copy has another
) WITH (fillfactor = 50);

CREATE INDEX IF NOT EXISTS counters_keep_until ON weir.counters (keep_until);

-- The server's memory, in one row.
CREATE UNLOGGED TABLE IF NOT EXISTS weir.memory (
    one    boolean     PRIMARY KEY DEFAULT true CHECK (one),
    server timestamptz NOT NULL, -- the start of the server that wrote since
    writer xid         NOT NULL, -- the transaction that wrote the row: a copy has another
    since  bigint      NOT NULL, -- the instant the memory began
    latest bigint      NOT NULL  -- no counter is dropped that ended later
) WITH (fillfactor = 10);

-- Where a table is missing, the memory is of no use.
DELETE FROM weir.memory;

-- forget ends the memory with the counters that TRUNCATE takes away.
CREATE OR REPLACE FUNCTION weir.forget() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM weir.memory;
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER forget BEFORE TRUNCATE ON weir.counters
FOR EACH STATEMENT EXECUTE FUNCTION weir.forget();

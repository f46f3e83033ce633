-- The tables that all builds share. They are unlogged: whenever Postgres recovers (a
-- crash, a promotion, a restored backup or snapshot) it empties them, so a pool that
-- may lack the last shares is never read again. They also cost no write-ahead log.

-- State of each pool but for its holders.
CREATE UNLOGGED TABLE IF NOT EXISTS weir.pools (
    key        text COLLATE "C" PRIMARY KEY,
    server     timestamptz NOT NULL, -- the start of the server whose memory it is
    writer     xid         NOT NULL, -- the transaction that wrote the row: a copy has another
    term       bigint      NOT NULL,
    generation bigint      NOT NULL,
    params     bigint[]    NOT NULL, -- empty before the first, else as weir.beat has them
    now        bigint      NOT NULL,
    until      bigint      NOT NULL,
    waited     bigint      NOT NULL,
    next       bigint      NOT NULL, -- before it no holder expires
    holders    bigint      NOT NULL,
    opinion    bigint      NOT NULL, -- that decides, 0 when there is none
    fleet      bigint      NOT NULL, -- the fleet's limit
    reserved   bigint      NOT NULL,
    granted    bigint      NOT NULL,
    in_flight  bigint      NOT NULL,
    modest     bigint      NOT NULL,
    bound      bigint      NOT NULL
) WITH (fillfactor = 10);

CREATE UNLOGGED TABLE IF NOT EXISTS weir.holders (
    pool       text COLLATE "C",
    name       bytea,
    slot       bigint  NOT NULL,
    seq        bigint  NOT NULL,
    generation bigint  NOT NULL,
    share      bigint  NOT NULL,
    unacked    bigint  NOT NULL,
    held       bigint  NOT NULL,
    in_flight  bigint  NOT NULL,
    peak       bigint  NOT NULL,
    opinion    bigint  NOT NULL,
    expires    bigint  NOT NULL,
    hungry     boolean NOT NULL,
    PRIMARY KEY (pool, name)
) WITH (fillfactor = 50);

-- No column that a beat changes is in an index, so that a beat writes none.
CREATE INDEX IF NOT EXISTS holders_slot ON weir.holders (pool, slot);

-- Where the holders are missing, the pools are of no use.
DELETE FROM weir.pools;

-- forget_pools ends the memory with the holders that TRUNCATE takes away.
CREATE OR REPLACE FUNCTION weir.forget_pools() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM weir.pools;
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER forget_pools BEFORE TRUNCATE ON weir.holders
FOR EACH STATEMENT EXECUTE FUNCTION weir.forget_pools();

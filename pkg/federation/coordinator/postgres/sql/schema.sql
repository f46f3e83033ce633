-- The tables that all builds share. They are unlogged: whenever Postgres recovers (a
-- crash, a promotion, a restored backup or snapshot) it empties them, so a budget that
-- may lack the last grants is never read again. They also cost no write-ahead log.

-- State of each budget but for its lists. Names are bytes, so that any is one.
CREATE UNLOGGED TABLE IF NOT EXISTS weir.budgets (
    budget  bytea PRIMARY KEY,
    server  timestamptz NOT NULL, -- the start of the server whose memory it is
    writer  xid         NOT NULL, -- the transaction that wrote the row: a copy has another
    memory  bigint      NOT NULL, -- the term of that memory
    since   bigint      NOT NULL, -- the instant it began
    length  bigint      NOT NULL, -- Window
    index   bigint      NOT NULL,
    term    bigint      NOT NULL,
    units   bigint      NOT NULL, -- Limit
    latest  bigint      NOT NULL,
    before  bigint      NOT NULL,
    granted bigint      NOT NULL  -- by all accounts
) WITH (fillfactor = 10);

-- The standing of each member.
CREATE UNLOGGED TABLE IF NOT EXISTS weir.budget_members (
    budget  bytea,
    member  bytea,
    seen    bigint NOT NULL,
    weight  bigint NOT NULL,
    demand  bigint NOT NULL,
    before  bigint NOT NULL,
    slice   bigint NOT NULL,
    next    bigint NOT NULL,
    told    bigint NOT NULL,
    granted bigint NOT NULL, -- by its accounts
    holders bigint NOT NULL, -- how many accounts it has
    PRIMARY KEY (budget, member)
) WITH (fillfactor = 20);

-- The accounts of the open window.
CREATE UNLOGGED TABLE IF NOT EXISTS weir.budget_holders (
    budget  bytea,
    member  bytea,
    holder  bytea,
    seq     bigint NOT NULL,
    granted bigint NOT NULL,
    PRIMARY KEY (budget, member, holder)
) WITH (fillfactor = 50);

-- The windows that are over, with an element in the arrays for each member.
CREATE UNLOGGED TABLE IF NOT EXISTS weir.budget_closed (
    budget   bytea,
    index    bigint,
    units    bigint    NOT NULL, -- Limit
    granted  bigint    NOT NULL,
    members  bytea[]   NOT NULL,
    had      bigint[]  NOT NULL, -- what each was granted
    admitted bigint[]  NOT NULL,
    refused  bigint[]  NOT NULL,
    reported boolean[] NOT NULL,
    complete boolean[] NOT NULL,
    PRIMARY KEY (budget, index)
);

-- Where another table is missing, the budgets are of no use.
DELETE FROM weir.budgets;

-- forget_budgets ends the memory with the rows that TRUNCATE takes away.
CREATE OR REPLACE FUNCTION weir.forget_budgets() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM weir.budgets;
    RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER forget_budgets BEFORE TRUNCATE ON weir.budget_members
FOR EACH STATEMENT EXECUTE FUNCTION weir.forget_budgets();

CREATE OR REPLACE TRIGGER forget_budgets BEFORE TRUNCATE ON weir.budget_holders
FOR EACH STATEMENT EXECUTE FUNCTION weir.forget_budgets();

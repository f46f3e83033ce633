-- The types left when somebody dropped a part of the schema.
DROP TYPE IF EXISTS weir.params$build CASCADE;
DROP TYPE IF EXISTS weir.command$build CASCADE;

-- limiter.Params, but for Since.
CREATE TYPE weir.params$build AS (
    generation bigint,
    algorithm  bigint,
    rates      bigint[], -- of each limit, window, burst, offset, monthly (0 or 1)
    either     boolean,  -- Any, a word of SQL
    buckets    bigint,
    max_delay  bigint,
    lifetime   bigint,
    tenants    text[],   -- Fairness: the declared tenants,
    weights    bigint[], -- their weights
    weight     bigint,   -- the default,
    reserve    boolean   -- and whether every declared tenant shares every window
);

-- limiter.Command, but for Memory.
CREATE TYPE weir.command$build AS (
    op         bigint,
    min        bigint,
    want       bigint,
    tenant     text,
    windows    bigint[], -- of each limit, window, offset, monthly, index
    granted_at bigint,   -- At
    first      boolean
);

-- The vouches of members for the memory with that term. Members without one vouch again.
CREATE UNLOGGED TABLE IF NOT EXISTS weir.budget_vouches (
    budget bytea,
    member bytea,
    term   bigint NOT NULL,
    list   bigint NOT NULL,
    PRIMARY KEY (budget, member)
);

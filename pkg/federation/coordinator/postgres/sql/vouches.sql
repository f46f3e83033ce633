-- What members said of the memory with that term. Without it they say it again.
CREATE UNLOGGED TABLE IF NOT EXISTS weir.budget_vouches (
    budget bytea,
    member bytea,
    term   bigint NOT NULL,
    list   bigint NOT NULL,
    PRIMARY KEY (budget, member)
);

-- What members said of their tenants, with the weight they said it with: versions that do
-- not know it keep a weight without it. Without it they say it again.
CREATE UNLOGGED TABLE IF NOT EXISTS weir.budget_tenants (
    budget bytea,
    member bytea,
    weight bigint NOT NULL,
    met    bigint NOT NULL,
    unmet  bigint NOT NULL,
    PRIMARY KEY (budget, member)
) WITH (fillfactor = 20);

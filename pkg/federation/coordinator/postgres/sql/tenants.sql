-- The reports of members on their tenants, with the weight they came with: versions that
-- do not know them keep a weight without one. Members without one report again.
CREATE UNLOGGED TABLE IF NOT EXISTS weir.budget_tenants (
    budget bytea,
    member bytea,
    weight bigint NOT NULL,
    met    bigint NOT NULL,
    unmet  bigint NOT NULL,
    PRIMARY KEY (budget, member)
) WITH (fillfactor = 20);

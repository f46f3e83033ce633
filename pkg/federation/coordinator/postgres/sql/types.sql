-- The types left when somebody dropped a part of the schema.
DROP TYPE IF EXISTS weir.params$build CASCADE;
DROP TYPE IF EXISTS weir.others$build CASCADE;

-- ledger.Params, with an element in the arrays for each member.
CREATE TYPE weir.params$build AS (
    units     bigint,  -- Limit
    length    bigint,  -- Window
    strategy  bigint,
    names     bytea[],
    weight    bigint[],
    nominal   bigint[],
    kept      bigint[],
    borrowing bigint[],
    meant     bigint[], -- what each is meant to use without asking
    self      bigint,   -- place of the member that sent the command, NULL for a stranger
    list      bigint    -- of the members that it means, if it vouches for the memory
);

-- The part that a command of one member does not change: the standings of the others,
-- with an element in the arrays for each member of the parameters.
CREATE TYPE weir.others$build AS (
    sliced bigint, -- what they may be using without asking
    active bigint, -- how many of them want anything
    has    bigint[],
    wants  bigint[],
    weight bigint[],
    met    bigint[], -- of tenants
    unmet  bigint[]
);

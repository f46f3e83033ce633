-- What this instance remembers of one partition: the guard, a string of
--   version  of this layout
--   line     of INFO replication that tells the instance that wrote since
--   since    the instant at which its memory of the partition began
--   latest   the newest instant at which the partition is known to have decided
-- It never expires.

local GUARD_VERSION, GUARD = 1, '>Bc54ll'

-- LATEST_STEP is how far latest may lag behind decisions that open no window: the
-- shortest time that a counter is kept beyond what it has to.
local LATEST_STEP = 100000

-- The command, and the values that it is asked of.

local op, first, any, _, min, want, granted_at, buckets, max_delay, lifetime, p_since, default, reached = unpack(COMMAND, ARGV[2])
-- MGET calls a key of another type missing; GET calls it an error.
local values = call('MGET', KEYS[1], KEYS[2])
local old, guard = values[1] or call('GET', KEYS[1]), values[2] or call('GET', KEYS[2])

-- A counter is own when it has the generation, the algorithm and the rates of the
-- parameters, or is new.
local own = not old or sub(old, 1, #ARGV[1]) == ARGV[1]

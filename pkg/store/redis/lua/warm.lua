-- Begins the memory of a partition that no call has reached yet.
-- KEYS: guard
-- Reply: began memory (0 or 1)

local memory = recall(redis.call('GET', KEYS[1]), read_clock())
if not memory.began then return 0 end
save_guard(KEYS[1], memory)
return 1

-- Begins the memory of a partition that no call has reached yet.
-- KEYS: guard
-- Reply: began memory (0 or 1)

local _, began = recall(KEYS[1], read_clock())
return began and 1 or 0

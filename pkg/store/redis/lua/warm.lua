-- Begins the memory of a partition that no call has reached yet.
-- KEYS: guard
-- Reply: began memory (0 or 1)

local since, latest, line, began = recall(call('GET', KEYS[1]))
if not began then return 0 end
save_guard(KEYS[1], line, since, latest)
return 1

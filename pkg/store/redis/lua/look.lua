-- Reads a value for Update.
-- KEYS: value, guard
-- Reply: began memory (0 or 1), now, since, latest, the line that tells the
--        instance, the value

local since, latest, line, began = recall(call('GET', KEYS[2]))
if began then save_guard(KEYS[2], line, since, latest) end
return {began and 1 or 0, now, since, latest, line, call('GET', KEYS[1])}

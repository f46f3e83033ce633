-- Reads a value for Update.
-- KEYS: value, guard
-- Reply: began memory (0 or 1), now, the instant since which nothing is forgotten, latest,
--        the line that identifies the instance, the value

local memory = recall(call('GET', KEYS[2]))
if memory.began then save_guard(KEYS[2], memory) end
return {memory.began and 1 or 0, now, math.max(memory.since, memory.volatile), memory.latest, memory.line, call('GET', KEYS[1])}

-- Begins the memory of a partition that no call has reached yet, and notes whether the
-- instance is sound.
-- KEYS: guard
-- ARGV: sound (0 or 1)
-- Reply: began memory (0 or 1), now, and the names of the memory and of the durable
--        one, flags

local guard = call('GET', KEYS[1])
local memory = recall(guard)
memory.flags = memory.flags - memory.flags % COPIED + tonumber(ARGV[1])
save_guard(KEYS[1], memory, guard)
return struct.pack('>Blc8c8B', memory.began and 1 or 0, now, memory_id(memory.line, memory.since), memory.origin, memory.flags)

-- Begins the memory of partitions that no call has reached yet, and notes whether the
-- instance is sound.
-- KEYS: guards
-- ARGV: sound (0 or 1)
-- Reply: of each partition began memory (0 or 1), now, and the names of the memory and of
--        the durable one, flags

local replies = {}
for i = 1, #KEYS do
  local guard = call('GET', KEYS[i])
  local memory = recall(guard)
  memory.flags = memory.flags - memory.flags % COPIED + tonumber(ARGV[1])
  save_guard(KEYS[i], memory, guard)
  replies[i] = struct.pack('>Blc8c8B', memory.began and 1 or 0, now, memory_id(memory.line, memory.since), memory.origin, memory.flags)
end
return table.concat(replies)

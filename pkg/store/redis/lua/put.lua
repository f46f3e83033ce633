-- Writes a value for Update, unless the instance is not the one that was read. That
-- the value and the guard are the same is what the transaction around it sees to.
-- KEYS: value, guard
-- ARGV: line that identifies the instance, instant of the decision, value, until when it
--       is kept, in milliseconds
-- Reply: written (0 or 1)

local memory = recall(call('GET', KEYS[2]))
if memory.began or memory.line ~= ARGV[1] then return 0 end
call('SET', KEYS[1], ARGV[3], 'PXAT', ARGV[4])
local decided = tonumber(ARGV[2])
if decided >= memory.latest + LATEST_STEP then
  memory.latest = decided
  save_guard(KEYS[2], memory)
end
return 1

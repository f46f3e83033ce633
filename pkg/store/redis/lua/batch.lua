-- Decides many commands at once, each of a counter, as far as quick.lua can.
-- KEYS: the counters, the guards of their partitions, the ends of counters
-- ARGV: a byte for each counter, the number of its guard among the guards, from 1;
--       for each counter its head and its command, as wire.lua has them
-- Reply: for each counter the reply of step.lua, or UNDECIDED where that has to be asked

local UNDECIDED = string.rep('\255', REPLY_BYTES)

local counters = #ARGV[1]
local values = call('MGET', spread(KEYS, 1, #KEYS - 1))
local texts, noted, made, replies = {}, {}, {}, {}
for i = 1, counters do
  local key, at = KEYS[i], counters + string.byte(ARGV[1], i)
  local reply, text, guard, ends = quick(key, ARGV[2 * i], ARGV[2 * i + 1], texts[key] or values[i], values[at])
  texts[key] = text -- for the same counter again
  if guard then
    values[at], noted[at] = guard, true
  end
  if ends then made[#made + 1], made[#made + 2] = ends, key end
  replies[i] = reply or UNDECIDED
end
for at in pairs(noted) do call('SET', KEYS[at], values[at]) end
if #made > 0 then call('ZADD', KEYS[#KEYS], spread(made)) end
return table.concat(replies)

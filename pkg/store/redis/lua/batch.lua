-- Decides many commands at once, each of a counter, as far as quick.lua can.
-- KEYS: the counters, the guards of their partitions, the ends of counters
-- ARGV: a byte for each counter, the number of its guard among the guards, from 1;
--       a byte for each counter, the number of its command among the commands, from 1;
--       for each command its head and the command, as wire.lua has them
-- Reply: for each counter the reply of step.lua, or UNDECIDED where that has to be asked

local UNDECIDED = string.rep('\255', REPLY_BYTES)

local counters = #ARGV[1]
local values = call('MGET', spread(KEYS, 1, #KEYS - 1))
local texts, noted, made, replies = {}, {}, new_lists(), {}
for i = 1, counters do
  local key, at, command = KEYS[i], counters + string.byte(ARGV[1], i), 1 + 2 * string.byte(ARGV[2], i)
  local reply, text, guard, ends = quick(key, ARGV[command], ARGV[command + 1], texts[key] or values[i], values[at])
  texts[key] = text -- for the same counter again
  if guard then
    values[at], noted[at] = guard, true
  end
  if ends then list(made, key, ends) end
  replies[i] = reply or UNDECIDED
end
for at in pairs(noted) do call('SET', KEYS[at], values[at]) end
if #made > 0 then call('ZADD', KEYS[#KEYS], spread(made)) end
return table.concat(replies)

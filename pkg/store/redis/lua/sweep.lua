-- Begins the memory of a partition that no call has reached yet, and drops counters
-- that have ended.
-- KEYS: ends, guard
-- ARGV: the most counters to look at
-- Reply: began memory (0 or 1), now, since, lost

local guard = call('GET', KEYS[2])
local memory = recall(guard)
local present = floor(now / 1000)

-- ends_of_text returns when a counter ends, which may have gone on since it was listed.
local function ends_of_text(text)
  if string.byte(text) ~= VERSION then return present + BACKSTOP end
  local s, at = {}
  s.algorithm, s.generation, s.meters, at = unpack_head(text)
  unpack_counts(s, text, at)
  return ends_of(s)
end

local due = {}
if now >= memory.latest then due = call('ZRANGEBYSCORE', KEYS[1], '-inf', present, 'LIMIT', 0, ARGV[1]) end
local ended, gone, later = {}, {}, {}
if #due > 0 then
  for i, text in ipairs(call('MGET', spread(due))) do
    local ends = text and ends_of_text(text) or 0
    if ends > present then
      later[#later + 1], later[#later + 2] = ends, due[i]
    else
      gone[#gone + 1] = due[i]
      if text then ended[#ended + 1] = due[i] end
    end
  end
end
-- A server whose memory is full allows a script everything after a deletion.
if #ended > 0 then
  call('DEL', spread(ended))
  memory.latest = now -- a clock that shows less from now on has stepped back
end
save_guard(KEYS[2], memory, guard)
if #gone > 0 then call('ZREM', KEYS[1], spread(gone)) end
if #later > 0 then pcall(call, 'ZADD', KEYS[1], spread(later)) end
-- The ends are kept as long as the counters, at least.
local left = call('PTTL', KEYS[1])
if left > -2 and left < BACKSTOP then call('PEXPIREAT', KEYS[1], present + 2 * BACKSTOP) end
return {memory.began and 1 or 0, now, memory.since, memory.lost}

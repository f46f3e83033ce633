-- Drops counters that have ended, and begins the memory of a partition that no call has
-- reached yet: of one partition, or of several where counters of it are dropped.
-- KEYS: ends, guard; of several partitions all guards in their order
-- ARGV: the most counters to look at
-- Reply: began memory (0 or 1), now, and of one partition since, lost

local guards = call('MGET', spread(KEYS, 2))
local memories = {}
local present = floor(now / 1000)

-- ends_of_text returns when a counter ends, which may have gone on since it was listed.
local function ends_of_text(text)
  if string.byte(text) ~= VERSION then return present + BACKSTOP end
  if string.byte(text, 2) == FIXED_WINDOW and string.byte(text, HEAD_BYTES) == 1 then -- most are, and need no tables
    local _, window, _, offset, monthly, at = unpack(RATE, text, HEAD_BYTES + 1)
    if monthly == 0 then
      local expires, _, _, _, _, number = unpack('>llllll', text, at)
      return math.ceil(larger(expires, (number + 2) * window - offset) / 1000)
    end
  end
  local s, at = {}
  s.algorithm, s.generation, s.meters, at = unpack_head(text)
  unpack_counts(s, text, at)
  return ends_of(s)
end

-- noted reports whether a guard says, or can be made to say, that an instant has passed at
-- which a counter ended: a clock that shows less from now on has stepped back.
local function noted(at, ends)
  local guard = guards[at]
  if not memories[at] and guard and string.byte(guard) == GUARD_VERSION then
    local _, _, _, latest = unpack(GUARD, guard)
    if latest >= ends * 1000 then return true end
  end
  local memory = memories[at] or recall(guard)
  memories[at] = memory
  if now < memory.latest then return false end
  if memory.latest < ends * 1000 then memory.latest = now end
  return true
end

if #guards == 1 then memories[1] = recall(guards[1]) end
local due = call('ZRANGEBYSCORE', KEYS[1], '-inf', present, 'LIMIT', 0, ARGV[1])
local ended, gone, later = {}, {}, {}
if #due > 0 then
  for i, text in ipairs(call('MGET', spread(due))) do
    local ends = text and ends_of_text(text) or 0
    if ends > present then
      later[#later + 1], later[#later + 2] = ends, due[i]
    elseif not text then
      gone[#gone + 1] = due[i]
    elseif noted(#guards == 1 and 1 or 1 + string.match(due[i], '{(%d+)}'), ends) then
      gone[#gone + 1], ended[#ended + 1] = due[i], due[i]
    end
  end
end
-- A server whose memory is full allows a script everything after a deletion.
if #ended > 0 then call('DEL', spread(ended)) end
local began = 0
for at, memory in pairs(memories) do
  if memory.began then began = 1 end
  save_guard(KEYS[at + 1], memory, guards[at])
end
if #gone > 0 then call('ZREM', KEYS[1], spread(gone)) end
if #later > 0 then pcall(call, 'ZADD', KEYS[1], spread(later)) end
-- The ends are kept as long as the counters, at least.
local left = call('PTTL', KEYS[1])
if left > -2 and left < BACKSTOP then call('PEXPIREAT', KEYS[1], present + 2 * BACKSTOP) end
local own = memories[1]
return {began, now, #guards == 1 and own.since or 0, #guards == 1 and own.lost or 0}

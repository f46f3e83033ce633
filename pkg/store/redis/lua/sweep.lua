-- Drops counters that have ended, and begins the memory of a partition that no call has
-- reached yet: of one partition, or of several where counters of it are dropped.
-- KEYS: ends, guard; of several partitions all guards in their order
-- ARGV: about how many counters to look at, at most
-- Reply: began memory (0 or 1), now, and of one partition since, lost

local AT_ONCE = 32 -- members

local guards = call('MGET', spread(KEYS, 2))
local memories = {}
local present = floor(now / 1000)

-- read_ends returns when a counter ends, which may have gone on since it was listed.
local function read_ends(text)
  if string.byte(text) ~= VERSION then return present + BACKSTOP end
  if string.byte(text, 2) == FIXED_WINDOW and string.byte(text, HEAD_BYTES) == 1 then -- most are, and need no tables
    local window, _, offset, monthly, expires, _, _, _, _, number = unpack('>lllBllllll', text, HEAD_BYTES + 9)
    if monthly == 0 then
      local ends = larger(expires, (number + 2) * window - offset)
      return (ends + -ends % 1000) / 1000
    end
  end
  local s, at = {}
  s.algorithm, s.generation, s.meters, at = unpack_head(text)
  unpack_counts(s, text, at)
  return ends_of(s)
end

-- ends_of_text is read_ends, once for counters that are alike: many were asked for once.
local ends_of_alike = {}
local function ends_of_text(text)
  local ends = ends_of_alike[text]
  if not ends then
    ends = read_ends(text)
    ends_of_alike[text] = ends
  end
  return ends
end

-- noted reports whether a guard says, or can be made to say, that an instant has passed at
-- which a counter ended: a clock that shows less from now on has stepped back.
local passed = {} -- the latest of the guards that were looked at
local function noted(at, ends)
  local guard = guards[at]
  if not passed[at] then
    passed[at] = 0
    if not memories[at] and guard and string.byte(guard) == GUARD_VERSION then
      local _, _, _, latest = unpack(GUARD, guard)
      passed[at] = latest
    end
  end
  if passed[at] >= ends * 1000 then return true end
  local memory = memories[at] or recall(guard)
  memories[at] = memory
  if now < memory.latest then return false end
  if memory.latest < ends * 1000 then memory.latest = now end
  return true
end

-- guard_of returns the number of a key's guard.
local guard_at = {} -- by how the keys of a partition begin
local function guard_of(key)
  if #guards == 1 then return 1 end
  local prefix = sub(key, 1, 8) -- the number of the partition is in there
  guard_at[prefix] = guard_at[prefix] or 1 + string.match(prefix, '{(%d+)')
  return guard_at[prefix]
end

if #guards == 1 then memories[1] = recall(guards[1]) end

-- The members that are due, until they have as many keys as asked for. keys are theirs, and
-- member_of is the number of each key's member.
local due, keys, member_of = {}, {}, {}
while #keys < tonumber(ARGV[1]) do
  local more = call('ZRANGEBYSCORE', KEYS[1], '-inf', present, 'LIMIT', #due, AT_ONCE)
  for _, member in ipairs(more) do
    if #keys >= tonumber(ARGV[1]) then break end
    due[#due + 1] = member
    each_key(member, function(key) keys[#keys + 1], member_of[#keys + 1] = key, #due end)
  end
  if #more < AT_ONCE then break end
end

local ended, gone, on, stays = {}, {}, {}, {}
if #keys > 0 then
  for i, text in ipairs(call('MGET', spread(keys))) do
    local ends = text and ends_of_text(text) or 0
    if ends > present then
      on[#on + 1], on[#on + 2] = i, ends
    elseif text and noted(guard_of(keys[i]), ends) then
      ended[#ended + 1] = keys[i]
    elseif text then
      stays[member_of[i]] = true
    end
  end
end
-- A server whose memory is full allows a script everything after a deletion.
if #ended > 0 then call('DEL', spread(ended)) end
-- Counters that have gone on are listed again. Their member stays where that fails, and where the
-- new one is the same.
local later = new_lists()
for i = 1, #on, 2 do
  if not stays[member_of[on[i]]] then list(later, keys[on[i]], on[i + 1]) end
end
if #later > 0 and not pcall(call, 'ZADD', KEYS[1], spread(later)) then
  for i = 1, #on, 2 do stays[member_of[on[i]]] = true end
end
local again = {}
for i = 2, #later, 2 do again[later[i]] = true end
for i, member in ipairs(due) do
  if not stays[i] and not again[member] then gone[#gone + 1] = member end
end
local began = 0
for at, memory in pairs(memories) do
  if memory.began then began = 1 end
  save_guard(KEYS[at + 1], memory, guards[at])
end
if #gone > 0 then call('ZREM', KEYS[1], spread(gone)) end
-- The ends are kept as long as the counters, at least.
local left = call('PTTL', KEYS[1])
if left > -2 and left < BACKSTOP then call('PEXPIREAT', KEYS[1], present + 2 * BACKSTOP) end
local own = memories[1]
return {began, now, #guards == 1 and own.since or 0, #guards == 1 and own.lost or 0}

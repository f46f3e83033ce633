-- What this instance remembers of one partition: the guard, a string of
--   version  of this layout
--   line     of INFO replication that tells the instance that wrote since
--   since    the instant at which its memory of the partition began
--   latest   the newest instant at which the partition is known to have decided
-- It never expires.

local GUARD_VERSION = 1
local GUARD = '>Bc54ll'
local LINE = 'master_replid:' .. string.rep('%x', 40)

-- recall returns limiter.Memory. Whoever finds the guard of another instance, or
-- none, begins the memory anew: what that instance granted may be lost.
local function recall(guard, now)
  local info = redis.call('INFO', 'replication')
  local memory = {latest = 0, began = false}
  if guard then
    local version = string.byte(guard)
    if version ~= GUARD_VERSION then
      error('the guard has layout version ' .. tostring(version) .. ', this script knows ' .. GUARD_VERSION)
    end
    version, memory.line, memory.since, memory.latest = struct.unpack(GUARD, guard)
    if string.find(info, memory.line, 1, true) then return memory end
  end
  memory.line, memory.began = string.match(info, LINE), true
  memory.since = math.max(now, memory.latest) + 1 -- the other may have served up to this very instant
  return memory
end

local function save_guard(key, memory)
  redis.call('SET', key, struct.pack(GUARD, GUARD_VERSION, memory.line, memory.since, memory.latest))
end

-- read returns the value of a key, false when there is none. MGET calls a key of
-- another type missing; GET calls it an error.
local function read(key, value)
  return value or redis.call('GET', key)
end

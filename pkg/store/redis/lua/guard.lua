-- The memory of this instance of one partition: the guard, a string of
--   version  of this layout
--   line     of INFO replication that identifies the instance that wrote since
--   since    the instant at which the memory of the instance began
--   latest   the newest instant at which the partition is known to have decided
-- and of what outlives the instance
--   origin   the name of the memory that began at lost
--   lost     the newest instant at which grants may have been lost
--   flags    SOUND: the instance loses nothing when it ends; COPIED: a replica may
--            have an older copy; FOLLOWED: a younger memory has answered a holder since
-- and, when a holder knew more of the memories before than this instance does,
--   volatile, durable  the newest instants up to which those may have granted, for limits
--            of either memory
-- It never expires. Versions of the script that know nothing of the later parts write
-- those that they know: nothing outlives the instance without the second one.

local GUARD_VERSION, GUARD, GUARD_BYTES = 1, '>Bc54ll', 71
local TAIL, TAIL_BYTES = '>c8lB', 17
local DOUBTS, DOUBTS_BYTES = '>ll', 16
local SOUND, COPIED, FOLLOWED = 1, 2, 4

-- LATEST_STEP is how far latest may lag behind decisions that open no window: the
-- shortest time that a counter is kept beyond what it has to. For a window that is
-- open, latest has reached the beginning: neither a clock that is set back nor another
-- memory then serves it again.
local LATEST_STEP = 100000

-- parts_of returns origin, lost, flags, volatile and durable of a guard whose memory began
-- at since; origin is nil where nothing outlives the instance.
local function parts_of(guard, since)
  local origin, lost, flags, volatile, durable = nil, since, 0, 0, 0
  if #guard >= GUARD_BYTES + TAIL_BYTES then origin, lost, flags = struct.unpack(TAIL, guard, GUARD_BYTES + 1) end
  if #guard == GUARD_BYTES + TAIL_BYTES + DOUBTS_BYTES then
    volatile, durable = struct.unpack(DOUBTS, guard, GUARD_BYTES + TAIL_BYTES + 1)
  end
  return origin, lost, flags, volatile, durable
end

-- A replica has a copy, or is about to get one.
local replicated = not string.find(info, '\nconnected_slaves:0', 1, true)

-- memory_id is limiter.MemoryID of the memory of an instance, as eight bytes. Two
-- memories of one partition do not begin in the same millisecond.
local function memory_id(line, since)
  return struct.pack('>I3I5', tonumber(string.sub(line, 15, 20), 16), math.floor(since / 1000) % 1099511627776)
end

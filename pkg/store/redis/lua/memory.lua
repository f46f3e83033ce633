-- limiter.Memory.

-- recall returns limiter.Memory: since and latest; and the line, and whether the
-- memory begins now. It begins for whoever finds the guard of another instance, or
-- none: what that instance granted may be lost.
local function recall(guard)
  local latest = 0
  if guard then
    if string.byte(guard) ~= GUARD_VERSION then
      error('the guard has layout version ' .. tostring((string.byte(guard))) .. ', this script knows ' .. GUARD_VERSION)
    end
    local _, line, since, newest = struct.unpack(GUARD, guard)
    if string.find(info, line, 1, true) then return since, newest, line, false end
    latest = newest
  end
  -- The other instance may have served up to this very instant.
  return math.max(now, latest) + 1, latest, string.match(info, 'master_replid:%x+'), true
end

local function save_guard(key, line, since, latest)
  call('SET', key, struct.pack(GUARD, GUARD_VERSION, line, since, latest))
end

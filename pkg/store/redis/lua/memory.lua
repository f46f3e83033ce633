-- limiter.Memory, and how it begins.

-- recall returns what is remembered: since, latest, line, origin, lost, flags, volatile and
-- durable of the guard, and began, whether the memory begins now. It begins for the first
-- call that finds the guard of another instance, or none: what that instance granted may be
-- lost. From then on everything but what the guard says to be sound may be.
local function recall(guard)
  local m = {latest = 0, began = true, line = string.match(info, 'master_replid:%x+'), flags = 0, volatile = 0, durable = 0}
  local outlived = false
  if guard then
    if string.byte(guard) ~= GUARD_VERSION then
      error('the guard has layout version ' .. tostring((string.byte(guard))) .. ', this script knows ' .. GUARD_VERSION)
    end
    local _, line, since, latest = struct.unpack(GUARD, guard)
    m.latest = latest
    m.origin, m.lost, m.flags, m.volatile, m.durable = parts_of(guard, since)
    m.origin = m.origin or memory_id(line, since)
    if string.find(info, line, 1, true) then
      m.since, m.line, m.began = since, line, false
    else
      -- A promoted replica, or a server that was restarted from a snapshot, has the
      -- replication ID of before. A replica that was restarted as a primary has not.
      outlived = m.flags == SOUND and string.find(info, 'master_replid2:0000000000', 1, true)
      m.flags = 0
    end
  end
  if m.began then
    -- The other instance may have served up to this very instant.
    m.since = math.max(now, m.latest) + 1
    if not outlived then m.origin, m.lost = memory_id(m.line, m.since), m.since end
  end
  if replicated and m.flags % FOLLOWED < COPIED then m.flags = m.flags + COPIED end
  return m
end

-- save_guard writes the guard, unless it is as it was.
local function save_guard(key, m, was)
  local text = struct.pack(GUARD, GUARD_VERSION, m.line, m.since, m.latest) .. struct.pack(TAIL, m.origin, m.lost, m.flags)
  if m.volatile > m.since or m.durable > m.lost then text = text .. struct.pack(DOUBTS, m.volatile, m.durable) end
  if text ~= was then call('SET', key, text) end
end

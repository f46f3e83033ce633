-- What this instance remembers of one partition. The guard is a hash of
--   replid   the instance that wrote since
--   since    the instant its memory of the partition began
--   latest   the newest instant at which a window of the partition was opened
-- It never expires.

-- recall returns limiter.Memory, and whether this call began it. Whoever finds
-- the guard of another instance, or none, stamps it: what that instance granted
-- may be lost, so the memory begins anew.
local function recall(guard, now)
  local replid = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
  local stored = redis.call('HMGET', guard, 'replid', 'since', 'latest')
  local latest = tonumber(stored[3] or 0)
  if stored[1] == replid then
    return {since = tonumber(stored[2]), latest = latest}, false
  end
  local since = math.max(now, latest) + 1 -- the other may have served up to this very instant
  redis.call('HSET', guard, 'replid', replid, 'since', since)
  return {since = since, latest = latest}, true
end

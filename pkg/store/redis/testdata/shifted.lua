-- Stands in for lua/server.lua: the clock is ahead of the server's by the
-- microseconds in the key "shift".
local function call(name, ...)
  local shift = tonumber(redis.call('GET', 'shift') or 0)
  if name == 'TIME' then
    local time = redis.call('TIME')
    local now = time[1] * 1000000 + time[2] + shift
    return {math.floor(now / 1000000), now % 1000000}
  end
  local key, value, option, instant = ...
  if name == 'SET' and option == 'PXAT' then return redis.call('SET', key, value, option, instant - math.floor(shift / 1000)) end
  return redis.call(name, ...)
end

-- Stands in for lua/server.lua: the time is the last argument, and until when a
-- value is to be kept is a value too, in milliseconds.
local function call(name, ...)
  if name == 'TIME' then
    local now = tonumber(ARGV[#ARGV])
    return {math.floor(now / 1000000), now % 1000000}
  end
  local key, value, option, instant = ...
  if option == 'PXAT' then redis.call('SET', 'kept until', instant) end
  if name == 'SET' then return redis.call('SET', key, value) end
  return redis.call(name, ...)
end

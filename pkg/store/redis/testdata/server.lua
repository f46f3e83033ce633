-- Stands in for lua/server.lua: the time is the last argument, and until when a
-- value is to be kept is a value too, in milliseconds.
local function call(name, key, value, option, instant)
  if name == 'TIME' then
    local now = tonumber(ARGV[#ARGV])
    return {math.floor(now / 1000000), now % 1000000}
  end
  if option == 'PXAT' then redis.call('SET', 'kept until', instant) end
  if option then return redis.call('SET', key, value) end
  if value then return redis.call(name, key, value) end
  return redis.call(name, key)
end

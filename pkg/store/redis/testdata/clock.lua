-- Stands in for lua/clock.lua: the time is the last argument, and until when a
-- value is to be kept is a value too, as far as integers are exact.

local function read_clock()
  return tonumber(ARGV[#ARGV])
end

local function save(key, value, instant)
  redis.call('SET', key, value)
  redis.call('SET', 'kept until', math.min(instant, 9007199254740991))
end

local function save_again(key, value)
  redis.call('SET', key, value)
end

-- Stands in for lua/clock.lua: the time is the last argument, and a key that is
-- to expire says when instead.

local function read_clock()
  return tonumber(ARGV[#ARGV])
end

local function keep(key, micros)
  redis.call('HSET', key, 'keep', micros)
end

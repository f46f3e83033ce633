-- Where the scripts touch the server's clock.

-- read_clock returns the server's time in microseconds since the Unix epoch.
local function read_clock()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- save writes a value that is to be kept until an instant.
local function save(key, value, instant)
  redis.call('SET', key, value, 'PXAT', math.ceil(instant / 1000))
end

-- save_again writes another value that is to be kept as long as the one before.
local function save_again(key, value)
  redis.call('SET', key, value, 'KEEPTTL')
end

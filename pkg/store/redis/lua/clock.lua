-- Where the scripts touch the server's clock.

-- read_clock returns the server's time in microseconds since the Unix epoch.
local function read_clock()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- keep lets a key expire after so many microseconds.
local function keep(key, micros)
  redis.call('PEXPIRE', key, math.ceil(micros / 1000))
end

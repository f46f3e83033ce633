-- How a counter and the reply are laid out.

local function machine(algorithm)
  if algorithm == FIXED_WINDOW then return WINDOWS end
  return algorithm <= 2 and SLIDING or BUCKETS
end

-- unpack_head returns what a head holds, the rates as new meters, and where it
-- ends.
local function unpack_head(text)
  local _, algorithm, generation, n, at = unpack(HEAD, text)
  local meters = {}
  for i = 1, n do
    local limit, window, burst, offset, monthly, next = unpack(RATE, text, at)
    meters[i] = {limit = limit, window = window, burst = burst, offset = offset, monthly = monthly, index = 0, used = 0, log = ''}
    at = next
  end
  return algorithm, generation, meters, at
end

local function pack_rate(r) return pack(RATE, r.limit, r.window, r.burst, r.offset, r.monthly) end

local function pack_head(s)
  local parts = {pack(HEAD, VERSION, s.algorithm, s.generation, #s.meters)}
  for i, m in ipairs(s.meters) do parts[i + 1] = pack_rate(m) end
  return table.concat(parts)
end

-- pack_result packs limiter.Result: began memory, reason, algorithm, number of
-- windows, whether their rates follow, granted, remaining, limit, resets after,
-- expires in, retry after, delay, now; the caller adds the windows.
local function pack_result(began, reason, algorithm, n, named, granted, remaining, limit, resets, expires_in, retry, delay, now)
  return pack('>BBBBBllllllll', began and 1 or 0, reason, algorithm, n, named and 1 or 0,
    granted, remaining, limit, resets, expires_in, retry, delay, now)
end

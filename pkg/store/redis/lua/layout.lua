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

-- unpack_counts adds what a counter holds after its head, which ends at a byte. It
-- returns what each tenant was granted, nil when nobody was.
local function unpack_counts(s, text, at)
  s.expires, s.began, s.pulse, s.asked, s.before, at = unpack(TIMES, text, at)
  for _, m in ipairs(s.meters) do
    m.index, m.used, at = unpack(METER, text, at)
  end
  if s.algorithm == FIXED_WINDOW then return at <= #text and cmsgpack.unpack(sub(text, at)) or nil end
  if machine(s.algorithm) == SLIDING then
    for _, m in ipairs(s.meters) do
      m.log, at = unpack('>I', text, at)
    end
    for _, m in ipairs(s.meters) do
      local size = m.log
      m.log, at = sub(text, at, at + size - 1), at + size
    end
  end
end

local function pack_rate(r) return pack(RATE, r.limit, r.window, r.burst, r.offset, r.monthly) end

local function pack_head(s)
  local parts = {pack(HEAD, VERSION, s.algorithm, s.generation, #s.meters)}
  for i, m in ipairs(s.meters) do parts[i + 1] = pack_rate(m) end
  return table.concat(parts)
end

-- pack_result packs limiter.Result: began memory (1) and made the counter (2), reason,
-- algorithm, number of windows, whether their rates follow, granted, remaining, limit, resets after,
-- expires in, retry after, delay, now, and the start of the memory that the limit is in; the
-- caller adds the windows.
local function pack_result(marks, reason, algorithm, n, named, granted, remaining, limit, resets, expires_in, retry, delay, now, begun)
  return pack('>BBBBBlllllllll', marks, reason, algorithm, n, named and 1 or 0,
    granted, remaining, limit, resets, expires_in, retry, delay, now, begun)
end

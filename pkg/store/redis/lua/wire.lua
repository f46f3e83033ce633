-- The arguments, the layout of a counter, and the reply. All are packed integers,
-- big endian.
--
-- KEYS: counter, guard
-- ARGV: head    version, algorithm, generation, number of rates, the rates
--       command op, first, any, min, want, at, buckets, max delay, lifetime, since
--       windows of a return: each one's rate and index
-- A rate is limit, window, burst, offset, monthly.
--
-- A counter is a head, of the rates and generation that are in force; expires,
-- pulse, asked, before; for each rate the meter's index and used; and for sliding
-- sums the number of bytes of each log and the logs, each an entry after the
-- other of instant and count. Used is the sum of the log then.

local VERSION = 1
local HEAD, RATE, COMMAND, TIMES, METER, SIZE, ENTRY = '>BBlB', '>llllB', '>BBBlllllll', '>llll', '>ll', '>I', '>ll'
local HEAD_BYTES, RATE_BYTES, TIMES_BYTES, METER_BYTES, SIZE_BYTES, ENTRY_BYTES = 11, 33, 32, 16, 4, 16

local TAKE, RETURN, PEEK, RESET = 0, 1, 2, 3
local GRANTED, EXHAUSTED, TOO_LARGE, STALE_GENERATION = 0, 1, 2, 3
local CLOCK_BEHIND, AMNESIA, FORFEITED = 4, 5, 6
local MAX_WINDOW, MAX_EXACT = 744 * 3600 * 1000000, 9007199254740991

local FIXED_WINDOW, SLIDING_WINDOW, LEAKY_BUCKET = 0, 1, 5
local WINDOWS, SLIDING, BUCKETS = 0, 1, 2

local function machine(algorithm)
  if algorithm == FIXED_WINDOW then return WINDOWS end
  if algorithm <= 2 then return SLIDING end
  return BUCKETS
end

local function unpack_rates(text, at, n)
  local rates = {}
  for i = 1, n do
    local r = {}
    r.limit, r.window, r.burst, r.offset, r.monthly = struct.unpack(RATE, text, at)
    rates[i], at = r, at + RATE_BYTES
  end
  return rates, at
end

local function pack_rate(r)
  return struct.pack(RATE, r.limit, r.window, r.burst, r.offset, r.monthly)
end

local function unpack_head(text)
  local _, algorithm, generation, n = struct.unpack(HEAD, text)
  local rates, at = unpack_rates(text, HEAD_BYTES + 1, n)
  return algorithm, generation, rates, at
end

local function pack_head(s)
  local parts = {struct.pack(HEAD, VERSION, s.algorithm, s.generation, #s.meters)}
  for i, m in ipairs(s.meters) do parts[i + 1] = pack_rate(m) end
  return table.concat(parts)
end

local p, c = {}, {} -- limiter.Params and limiter.Command

-- parse reads the arguments into p and c.
local function parse()
  local any
  p.algorithm, p.generation, p.rates = unpack_head(ARGV[1])
  c.op, c.first, any, c.min, c.want, c.at, p.buckets, p.max_delay, p.lifetime, p.since = struct.unpack(COMMAND, ARGV[2])
  p.any, p.machine = any == 1, machine(p.algorithm)
  if c.op == RETURN then
    c.windows = {}
    for at = 1, #ARGV[3], RATE_BYTES + 8 do
      local w = unpack_rates(ARGV[3], at, 1)[1]
      w.index = struct.unpack('>l', ARGV[3], at + RATE_BYTES)
      c.windows[#c.windows + 1] = w
    end
  end
end

-- unpack_state returns limiter.State, the zero one when there is no text.
local function unpack_state(text)
  if not text then
    return {algorithm = FIXED_WINDOW, generation = 0, expires = 0, pulse = 0, asked = 0, before = 0, meters = {}}
  end
  local version = string.byte(text)
  if version ~= VERSION then
    error('the counter has layout version ' .. tostring(version) .. ', this script knows ' .. VERSION)
  end
  local s, at = {}, 0
  s.algorithm, s.generation, s.meters, at = unpack_head(text)
  s.expires, s.pulse, s.asked, s.before = struct.unpack(TIMES, text, at)
  at = at + TIMES_BYTES
  for _, m in ipairs(s.meters) do
    m.index, m.used = struct.unpack(METER, text, at)
    at = at + METER_BYTES
  end
  if machine(s.algorithm) == SLIDING then
    local log = at + #s.meters * SIZE_BYTES
    for _, m in ipairs(s.meters) do
      local size = struct.unpack(SIZE, text, at)
      m.log = string.sub(text, log, log + size - 1)
      at, log = at + SIZE_BYTES, log + size
    end
  end
  return s
end

local function pack_state(s, head)
  local parts = {head, struct.pack(TIMES, s.expires, s.pulse, s.asked, s.before)}
  for _, m in ipairs(s.meters) do
    parts[#parts + 1] = struct.pack(METER, m.index, m.used)
  end
  if machine(s.algorithm) == SLIDING then
    for _, m in ipairs(s.meters) do parts[#parts + 1] = struct.pack(SIZE, #m.log) end
    for _, m in ipairs(s.meters) do parts[#parts + 1] = m.log end
  end
  return table.concat(parts)
end

-- reply packs limiter.Result: began memory, reason, algorithm, number of windows,
-- whether their rates follow, granted, remaining, limit, resets after, expires in,
-- retry after, delay, now; and for each window its rate, when it is not that of the
-- parameters, index and granted.
local function reply(began, res, windows, now, own)
  local parts = {struct.pack('>BBBBBllllllll', began and 1 or 0, res.reason, res.algorithm, #windows, own and 0 or 1,
    res.granted or 0, res.remaining or 0, res.limit or 0, res.reset_after or 0,
    res.expires_in or 0, res.retry_after or 0, res.delay or 0, now)}
  for _, w in ipairs(windows) do
    if not own then parts[#parts + 1] = pack_rate(w) end
    parts[#parts + 1] = struct.pack('>ll', w.index, w.granted)
  end
  return table.concat(parts)
end

-- FixedWindow.Step of pkg/limiter on one key. Names follow the Go code; change
-- both or neither.
--
-- KEYS: state, guard
-- ARGV: op, min, want, generation, number of rates, each rate's limit and window,
--       and for a return the number of windows, each window's length and index
-- Reply: began memory (0 or 1), reason, granted, remaining, expires in, retry
--        after, now, number of windows, each window's limit, length, index, granted
--
-- The state is a hash of integers: v the version of this layout, g the
-- generation, n the number of windows, and for the i-th window its limit li,
-- length wi, index xi and granted units ui.

local VERSION = '1'
local TAKE = 0
local GRANTED, EXHAUSTED, TOO_LARGE, STALE_GENERATION = 0, 1, 2, 3
local CLOCK_BEHIND, AMNESIA, FORFEITED = 4, 5, 6
local MAX_LIMIT, MAX_WINDOW = 1000000000000, 744 * 3600 * 1000000

local function index(window, now) return math.floor(now / window) end
local function start(w) return w.index * w.window end

local function parse()
  local c = {
    op = tonumber(ARGV[1]), min = tonumber(ARGV[2]), want = tonumber(ARGV[3]),
    generation = tonumber(ARGV[4]), rates = {}, windows = {},
  }
  local at = 6
  for i = 1, tonumber(ARGV[5]) do
    c.rates[i] = {limit = tonumber(ARGV[at]), window = tonumber(ARGV[at + 1])}
    at = at + 2
  end
  if c.op ~= TAKE then
    for i = 1, tonumber(ARGV[at]) do
      c.windows[i] = {window = tonumber(ARGV[at + 1]), index = tonumber(ARGV[at + 2])}
      at = at + 2
    end
  end
  return c
end

local function load_state(key)
  local h = redis.call('HMGET', key, 'v', 'g', 'n', 'l1', 'w1', 'x1', 'u1')
  if not h[1] then return {generation = 0, windows = {}} end
  if h[1] ~= VERSION then
    error('the counter has layout version ' .. h[1] .. ', this script knows ' .. VERSION)
  end
  local s = {generation = tonumber(h[2]), windows = {}}
  for i = 1, tonumber(h[3]) do
    if i > 1 then
      h = redis.call('HMGET', key, 'v', 'g', 'n', 'l' .. i, 'w' .. i, 'x' .. i, 'u' .. i)
    end
    s.windows[i] = {
      limit = tonumber(h[4]), window = tonumber(h[5]), index = tonumber(h[6]), granted = tonumber(h[7]),
    }
  end
  return s
end

-- store_state writes the whole state; it is the first write of a decision that
-- opens a window, so a server that is out of memory refuses it whole.
local function store_state(key, s, now)
  local fields, keep_for = {'v', VERSION, 'g', s.generation, 'n', #s.windows}, 0
  for i, w in ipairs(s.windows) do
    local at = #fields
    fields[at + 1], fields[at + 2] = 'l' .. i, w.limit
    fields[at + 3], fields[at + 4] = 'w' .. i, w.window
    fields[at + 5], fields[at + 6] = 'x' .. i, w.index
    fields[at + 7], fields[at + 8] = 'u' .. i, w.granted
    keep_for = math.max(keep_for, start(w) + 2 * w.window - now)
  end
  redis.call('HSET', key, unpack(fields))
  keep(key, keep_for)
end

local function store_granted(key, windows)
  local fields = {}
  for i, w in ipairs(windows) do
    fields[2 * i - 1] = 'u' .. i
    fields[2 * i] = w.granted
  end
  redis.call('HSET', key, unpack(fields))
end

local function find(windows, length)
  for _, w in ipairs(windows) do
    if w.window == length then return w end
  end
end

local function open(rate, now, granted)
  return {limit = rate.limit, window = rate.window, index = index(rate.window, now), granted = granted}
end

local function roll(rates, old, now)
  local kept = {}
  for _, r in ipairs(rates) do
    local w = find(old, r.window)
    if w then
      kept[#kept + 1] = open(r, now, w.index == index(r.window, now) and w.granted or 0)
    end
  end
  local named = #kept
  for _, w in ipairs(old) do
    if index(w.window, now) == w.index and not find(kept, w.window) then
      kept[#kept + 1] = w
    end
  end
  if #kept > named then return kept end
  local all = {}
  for i, r in ipairs(rates) do
    all[i] = find(kept, r.window) or open(r, now, 0)
  end
  return all
end

-- same reports whether only the granted units of two lists of windows differ.
local function same(a, b)
  if #a ~= #b then return false end
  for i, w in ipairs(a) do
    if w.window ~= b[i].window or w.index ~= b[i].index or w.limit ~= b[i].limit then return false end
  end
  return true
end

local function charge(windows, amount)
  for _, w in ipairs(windows) do w.granted = w.granted + amount end
end

local function too_large(rates, amount)
  for _, r in ipairs(rates) do
    if amount > r.limit then return true end
  end
  return false
end

local function take(c, windows, now, memory)
  local res = {granted = 0, remaining = MAX_LIMIT, expires_in = MAX_WINDOW, retry_after = 0}
  local forgotten, full = 0, 0
  for _, w in ipairs(windows) do
    local left, ends = math.max(0, w.limit - w.granted), start(w) + w.window - now
    res.remaining = math.min(res.remaining, left)
    res.expires_in = math.min(res.expires_in, ends)
    if left < c.min then full = math.max(full, ends) end
    if start(w) < memory.since then forgotten = math.max(forgotten, ends) end
  end
  if forgotten > 0 then res.remaining = 0 end
  if too_large(c.rates, c.min) then
    res.reason = TOO_LARGE
  elseif forgotten > 0 then
    res.reason, res.retry_after = AMNESIA, math.max(forgotten, full)
  elseif full > 0 then
    res.reason, res.retry_after = EXHAUSTED, full
  else
    res.reason, res.granted = GRANTED, math.min(c.want, res.remaining)
    res.remaining = res.remaining - res.granted
    charge(windows, res.granted)
  end
  return res
end

local function applies(c, windows, memory)
  if #c.windows ~= #windows then return false end
  for i, w in ipairs(windows) do
    if w.window ~= c.windows[i].window or w.index ~= c.windows[i].index then return false end
    if c.want > w.granted or start(w) < memory.since then return false end
  end
  return true
end

local function give_back(c, windows, memory)
  local res = {reason = FORFEITED, granted = 0, remaining = 0, expires_in = 0, retry_after = 0}
  if applies(c, windows, memory) then
    res.reason, res.granted = GRANTED, c.want
    charge(windows, -c.want)
  end
  return res
end

local function served(windows, memory)
  local newest = memory.latest
  for _, w in ipairs(windows) do newest = math.max(newest, start(w)) end
  return newest
end

local function reply(began, res, windows, now)
  local r = {
    began and 1 or 0, res.reason, res.granted or 0, res.remaining or 0,
    res.expires_in or 0, res.retry_after or 0, now, #windows,
  }
  for _, w in ipairs(windows) do
    local n = #r
    r[n + 1], r[n + 2], r[n + 3], r[n + 4] = w.limit, w.window, w.index, w.granted
  end
  return r
end

local c, now = parse(), read_clock()
local memory, began = recall(KEYS[2], now)
local old = load_state(KEYS[1])
if c.generation < old.generation then
  return reply(began, {reason = STALE_GENERATION}, old.windows, now)
end
local newest = served(old.windows, memory)
if now < newest then
  return reply(began, {reason = CLOCK_BEHIND, retry_after = newest - now}, old.windows, now)
end

local windows = roll(c.rates, old.windows, now)
local unchanged = c.generation == old.generation and same(windows, old.windows)
local res
if c.op == TAKE then
  res = take(c, windows, now, memory)
else
  res = give_back(c, windows, memory)
end
if not unchanged then
  store_state(KEYS[1], {generation = c.generation, windows = windows}, now)
  redis.call('HSET', KEYS[2], 'latest', now)
elseif res.granted > 0 then
  store_granted(KEYS[1], windows)
end
return reply(began, res, windows, now)

-- State, and how it is kept. Only the accounts that a command is about are read, and
-- each standing knows what the accounts of its member add up to.

local s      -- State
local memory -- Memory, and the line of the instance that has it
local written, dropped = {}, {} -- fields to write, with their values, and to delete

-- begin begins a memory, with a term above all before. The one before may have granted
-- up to this very instant.
local function begin()
  local term = memory and larger(memory.term, s.term) or 0
  memory = {
    line = string.match(info, 'master_replid:%x+'),
    term = smaller(larger(now, larger(term, larger(c.term, c.born)) + 1), MAX_EXACT), since = larger(now, s.latest) + 1,
  }
end

local function read_standing(text, at)
  local t = {}
  t.member, t.seen, t.weight, t.demand, t.before, t.slice, t.next, t.told, t.granted, t.holders, at = unpack(STANDING, text, at)
  t.met, t.unmet = 0, 0
  s.standings[#s.standings + 1], s.by[t.member] = t, t
  return at
end

local said = '' -- of tenants, as it is kept

-- read_tenants reads what members said of their tenants. Versions that do not know it keep a
-- member's weight without it: what was said with another weight is nothing.
local function read_tenants()
  local at = 1
  said = call('HGET', KEYS[1], 't') or ''
  while at <= #said do
    local name, weight, met, unmet
    name, weight, met, unmet, at = unpack(TENANTS, said, at)
    local t = s.by[name]
    if t and t.weight == weight then t.met, t.unmet = met, unmet end
  end
end

local function keep_tenants()
  local list = {}
  for _, t in ipairs(s.standings) do
    if t.unmet > 0 then list[#list + 1] = pack(TENANTS, #t.member, t.member, t.weight, t.met, t.unmet) end
  end
  local text = table.concat(list)
  if text ~= said then call('HSET', KEYS[1], 't', text) end
end

-- recall reads the memory. One begins for a command that finds none, or that of another instance,
-- or one that is older than what the holder or its cluster has seen: it may lack grants.
local function recall()
  local text = call('HGET', KEYS[1], 'memory')
  s = {standings = {}, by = {}, closed = {}, granted = 0}
  if not text then
    s.window, s.index, s.term, s.limit, s.before, s.latest = 0, 0, 0, 0, 0, 0
    return begin()
  end
  if string.byte(text) ~= VERSION then
    error('the budget has layout version ' .. tostring((string.byte(text))) .. ', this script knows ' .. VERSION)
  end
  local _, count, at
  memory = {}
  _, memory.line, memory.term, memory.since, s.window, s.index, s.term, s.limit, s.before, s.latest, count, at = unpack(HEAD, text)
  for _ = 1, count do at = read_standing(text, at) end
  read_tenants()
  for i = 1, (#text + 1 - at) / 8 do s.closed[i], at = unpack(INDEX, text, at) end
  for _, t in ipairs(s.standings) do s.granted = s.granted + t.granted end
  if not string.find(info, memory.line, 1, true) or larger(c.term, c.born) > memory.term then begin() end
end

local function head()
  local list = {pack(HEAD, VERSION, memory.line, memory.term, memory.since, s.window, s.index, s.term, s.limit, s.before,
    s.latest, #s.standings)}
  for _, t in ipairs(s.standings) do
    list[#list + 1] = pack(STANDING, #t.member, t.member, t.seen, t.weight, t.demand, t.before, t.slice, t.next, t.told,
      t.granted, t.holders)
  end
  for _, index in ipairs(s.closed) do list[#list + 1] = pack(INDEX, index) end
  return table.concat(list)
end

-- keep writes the memory. Redis forgets a budget that nobody asked for in twice the
-- longest window, and then another memory begins.
local function keep()
  for field in pairs(dropped) do call('HDEL', KEYS[1], field) end
  for field, value in pairs(written) do call('HSET', KEYS[1], field, value) end
  keep_tenants()
  call('HSET', KEYS[1], 'memory', head())
  call('PEXPIREAT', KEYS[1], quotient(now + 2 * MAX_WINDOW, 1000))
end

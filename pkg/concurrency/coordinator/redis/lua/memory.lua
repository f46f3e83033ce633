-- State, and how it is kept. Each holder is read and written at most once.

local s          -- State without its holders
local p          -- its Params, nil before the first
local known = {} -- holders by name, false for none
local created    -- whether there may be a key that Redis would keep for ever

local function find(who)
  local h = known[who]
  if h == nil then
    h = false
    local text = call('HGET', KEYS[1], 'h' .. who)
    if text then
      h = {name = who}
      h.slot, h.seq, h.generation, h.share, h.unacked, h.held, h.in_flight, h.peak, h.limit, h.expires, h.hungry = unpack(HOLDER, text)
      h.hungry = h.hungry == 1
    end
    known[who] = h
  end
  return h
end

-- begin is Begin, with a term above all before. Quarantine is the longest that any
-- share of a memory before is known to last.
local function begin(above, quarantine)
  call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
  known, p = {}, nil
  s = {
    line = string.match(info, 'master_replid:%x+'), term = larger(now, above + 1),
    now = now, till = now + quarantine, waited = quarantine,
    generation = 0, limit = 0, reserved = 0, granted = 0, in_flight = 0, modest = 0, bound = 0,
    holders = 0, opinions = 0, hungry = 0, kept = 0, params = '',
  }
end

-- whole reports whether nothing of a memory was evicted.
local function whole()
  return call('ZCARD', KEYS[2]) == s.holders and call('ZCARD', KEYS[3]) == s.opinions and call('ZCARD', KEYS[4]) == s.hungry
end

-- recall reads the memory. One begins for a command that finds none, or that of
-- another instance, which may lack the last shares.
local function recall()
  local text = call('HGET', KEYS[1], 'memory')
  if not text then return begin(term, params(wanted).quarantine) end
  if string.byte(text) ~= VERSION then
    error('the pool has layout version ' .. tostring((string.byte(text))) .. ', this script knows ' .. VERSION)
  end
  local _
  s = {}
  _, s.term, s.generation, s.now, s.till, s.waited, s.limit, s.reserved, s.granted, s.in_flight, s.modest, s.bound,
    s.holders, s.opinions, s.hungry, s.kept, s.line, s.params = unpack(MEMORY, text)
  p = params(s.params)
  if not string.find(info, s.line, 1, true) or not whole() then
    begin(larger(term, s.term), larger(p.quarantine, params(wanted).quarantine))
  end
end

-- keep writes the memory. Redis forgets a pool that nobody asked for since every share
-- of it expired: it begins again then.
local function keep()
  local renewed = s.kept < now + MAX_TTL
  if renewed then s.kept = now + 2 * MAX_TTL end
  for who, h in pairs(known) do
    if h then
      call('HSET', KEYS[1], 'h' .. who, pack(HOLDER, h.slot, h.seq, h.generation, h.share, h.unacked, h.held,
        h.in_flight, h.peak, h.limit, h.expires, h.hungry and 1 or 0))
    end
  end
  call('HSET', KEYS[1], 'memory', pack(MEMORY, VERSION, s.term, s.generation, s.now, s.till, s.waited, s.limit,
    s.reserved, s.granted, s.in_flight, s.modest, s.bound, s.holders, s.opinions, s.hungry, s.kept, s.line, s.params))
  if renewed or created then
    for _, key in ipairs(KEYS) do call('PEXPIREAT', key, floor(s.kept / 1000)) end
  end
end

-- step.go and target.go.

local function behind(h)
  if term ~= s.term then return term > s.term end
  if not h or h.generation == 0 then return applied > s.generation end
  return applied > h.generation
end

local function adopt()
  if wanted == s.params then return end
  local next = params(wanted)
  if p and next.generation < p.generation then return end
  local handoff = p and p.handoff or next.handoff
  p, s.params = next, wanted
  if quarantined() and p.quarantine > s.waited then
    s.till, s.waited = s.till + p.quarantine - s.waited, p.quarantine
  end
  if s.limit == 0 then s.limit = p.initial end
  if handoff ~= p.handoff then
    s.reserved = 0
    for _, who in ipairs(call('ZRANGE', KEYS[2], 0, -1)) do s.reserved = s.reserved + reserve(find(who)) end
  end
  settle()
end

local occupied, allowed -- of the answer

local function observe(h)
  local own, most = 0, in_flight
  if h then
    own = reserve(h)
    if seq <= h.seq then
      most = 0
    elseif peak > h.peak then
      most = peak
    end
  end
  occupied, allowed = s.reserved + larger(0, most - own), s.bound
  if quarantined() then allowed = larger(allowed, occupied) end
end

local function refresh(h)
  local till = s.now + p.ttl
  if quarantined() and term ~= s.term then till = smaller(till, s.till) end
  if till > h.expires then
    h.expires = till
    call('ZADD', KEYS[2], till, h.name)
  end
end

local function note(h)
  discount(h)
  if term ~= s.term then
    h.unacked = larger(h.unacked, held)
  elseif h.generation > 0 and applied >= h.generation then
    h.unacked = h.share
  elseif h.generation == 0 then
    h.unacked = held
  end
  h.seq, h.held, h.in_flight, h.peak = seq, held, in_flight, peak
  infer(h, limit)
  count(h)
end

local function join()
  local h = {
    name = name, slot = s.holders, seq = 0, generation = 0, share = 0, unacked = 0, held = 0, in_flight = 0,
    peak = peak, limit = 0, expires = 0, hungry = false,
  }
  created = created or s.holders == 0
  known[name] = h
  s.holders = s.holders + 1
  call('HSET', KEYS[1], 's' .. h.slot, name)
  refresh(h)
  count(h)
  note(h)
  return h
end

-- part splits a whole so that parts differ by one at most: the first have more.
local function part(whole, parts, i)
  local each = floor(whole / parts)
  return i < whole - each * parts and each + 1 or each
end

local function target(h)
  if p.allocation ~= DEMAND_PROPORTIONAL then return part(s.limit, s.holders, h.slot) end
  if not h.hungry then return h.in_flight + 1 end
  local before = call('ZCOUNT', KEYS[4], 0, '(' .. h.slot)
  return larger(1, part(larger(0, s.limit - s.modest), s.hungry, before))
end

local function reallocate(h)
  local share = target(h)
  discount(h)
  share = smaller(share, s.limit - s.reserved)
  if quarantined() then share = smaller(share, h.held) end
  share = larger(share, 0)
  if share ~= h.share or h.generation == 0 then
    s.generation = s.generation + 1
    h.generation, h.share = s.generation, share
    h.unacked = larger(h.unacked, share)
  end
  count(h)
  settle()
end

local function grant(h)
  return pack(GRANT, h and h.seq or seq, s.term, h and h.generation or 0, h and h.share or 0, h and h.expires - s.now or 0,
    s.limit, s.holders, s.granted, s.in_flight, occupied, allowed, larger(0, s.till - s.now))
end

-- report returns the holder, or false, and whether a share is to be found for it.
local function report(h)
  observe(h)
  local fresh = h and seq > h.seq
  if fresh then refresh(h) end
  expire()
  h = find(name)
  if op == LEAVE then
    if fresh then
      remove(h)
      return false, false
    end
    return h, false
  end
  if not h then return join(), true end
  if fresh then note(h) end
  return h, fresh
end

recall()
local h = find(name)
if behind(h) then
  begin(larger(term, s.term), larger(p.quarantine, params(wanted).quarantine))
  h = false
end
adopt()
s.now = larger(s.now, now)
local fresh
h, fresh = report(h)
settle()
if fresh then reallocate(h) end
keep()
return grant(h)

-- account.go, opinions.go and ranks.go.

local function quarantined() return s.now < s.till end

local function reserve(h)
  return larger(p.handoff == OCCUPANCY and h.share or h.unacked, h.in_flight)
end

local function discount(h)
  s.reserved, s.granted, s.in_flight = s.reserved - reserve(h), s.granted - h.share, s.in_flight - h.in_flight
  if not h.hungry then s.modest = s.modest - h.in_flight - 1 end
end

-- enter puts a holder into a sorted set that has count members, or out of it, and
-- returns how many it has then.
local function enter(key, count, h, into, score)
  if into then
    created = created or count == 0
    return count + call('ZADD', key, score, h.name)
  end
  return count - call('ZREM', key, h.name)
end

local function count(h)
  s.reserved, s.granted, s.in_flight = s.reserved + reserve(h), s.granted + h.share, s.in_flight + h.in_flight
  local hungry = h.in_flight >= h.share
  if hungry ~= h.hungry then
    h.hungry = hungry
    s.hungry = enter(KEYS[4], s.hungry, h, hungry, h.slot)
  end
  if not hungry then s.modest = s.modest + h.in_flight + 1 end
end

local function infer(h, inferred)
  if inferred == h.limit then return end
  h.limit = inferred
  s.opinions = enter(KEYS[3], s.opinions, h, inferred > 0, inferred)
end

local function aggregate()
  if s.opinions == 0 then return s.limit end
  local at = p.aggregate == MIN and 0 or floor((s.opinions - 1) / 2)
  return tonumber(call('ZRANGE', KEYS[3], at, at, 'WITHSCORES')[2])
end

local function settle()
  s.limit = smaller(larger(aggregate(), p.min), p.max)
  if s.reserved <= s.limit then
    s.bound = s.limit
    return
  end
  s.bound = larger(s.bound, s.limit)
  if quarantined() then s.bound = larger(s.bound, s.reserved) end
end

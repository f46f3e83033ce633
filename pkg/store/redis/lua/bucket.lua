-- bucket.go and Rate.pace.

-- pace returns cost and drain. A meter and a rate remember them.
local function pace(r)
  if not r.cost then
    local a, b = r.limit, r.window
    while b ~= 0 do a, b = b, a % b end
    r.cost, r.drain = r.window / a, r.limit / a
  end
  return r.cost, r.drain
end

local function brim(r)
  local cost, drain = pace(r)
  if p.algorithm == LEAKY_BUCKET then return p.max_delay * drain + cost end
  return (r.burst == 0 and r.limit or r.burst) * cost
end

local function capacity(r)
  local cost, drain = pace(r)
  return floor_div(brim(r) - p.lifetime * drain, cost)
end

local function drain_to(m, now, floor)
  local _, drain = pace(m)
  local elapsed = math.max(0, now - m.index)
  if elapsed > floor_div(m.used, drain) then return floor end
  return math.max(floor, m.used - elapsed * drain)
end

local function settle(m, now, since)
  local _, drain = pace(m)
  local level = drain_to(m, now, p.lifetime * drain)
  if since > 0 then
    local full = {limit = m.limit, window = m.window, index = since, used = brim(m)}
    level = math.max(level, drain_to(full, now, 0))
  end
  m.used, m.index = level, math.max(m.index, now)
end

local function drained(m, now)
  local _, drain = pace(m)
  return ceil_div(drain_to(m, now, 0), drain)
end

local function bucket_wait(m, amount)
  local cost, drain = pace(m)
  local over = m.used - (brim(m) - amount * cost)
  if over <= 0 then return 0 end
  return ceil_div(over, drain)
end

local function delay(m)
  local cost, drain = pace(m)
  return ceil_div(math.max(0, m.used - cost), drain)
end

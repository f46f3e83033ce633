-- giveback.go.

local function return_to_windows(s, since)
  if #c.windows ~= #s.meters then return false end
  for i, m in ipairs(s.meters) do
    local w = c.windows[i]
    if not same_windows(m, w) or m.index ~= w.index or c.want > m.used or start_of(m) < since then return false end
  end
  for _, m in ipairs(s.meters) do m.used = m.used - c.want end
  return true
end

local function take_off_meter(m, now)
  if p.machine == SLIDING then return erase(m, spent_by(m, c.at), c.want) end
  local cost, drain = pace(m)
  if c.want > floor_div(brim(m), cost) then return false end
  local passed = now - c.at
  if passed > floor_div(c.want * cost, drain) then return false end
  local rest = c.want * cost - passed * drain
  if rest <= 0 or rest > m.used then return false end
  m.used = math.max(p.lifetime * drain, m.used - rest)
  return true
end

local function return_to_meters(s, now, since)
  if machine(s.algorithm) ~= p.machine or #c.windows ~= #s.meters or c.at > now then return false end
  for i, m in ipairs(s.meters) do
    local w = c.windows[i]
    if w.limit ~= m.limit or w.window ~= m.window or c.at < since or not take_off_meter(m, now) then return false end
  end
  return true
end

-- take_off reports whether every meter could take the units off; otherwise none
-- does.
local function take_off(s, now, since)
  if p.any then return false end
  if s.algorithm == FIXED_WINDOW then return return_to_windows(s, since) end
  local before = {}
  for i, m in ipairs(s.meters) do before[i] = {used = m.used, log = m.log} end
  if return_to_meters(s, now, since) then return true end
  for i, m in ipairs(s.meters) do m.used, m.log = before[i].used, before[i].log end
  return false
end

local function give_back(s, now, since)
  local res = {algorithm = s.algorithm, reason = FORFEITED, granted = 0}
  if take_off(s, now, since) then res.reason, res.granted = GRANTED, c.want end
  describe(s, now, since, res)
  return res
end

-- adopt.go.

-- meter returns a new meter of the parameters with so many units in use.
local function meter(r, now, used)
  local m = {limit = r.limit, window = r.window, burst = r.burst, offset = r.offset, monthly = r.monthly, index = 0, used = 0}
  if p.machine == WINDOWS then
    m.index, m.used = index(r, now), used
  elseif p.machine == SLIDING then
    m.log = ''
    if used > 0 then note(m, spent_by(r, now), used) end
  else
    local cost = pace(m)
    m.index, m.used = now, math.min(used, floor_div(MAX_EXACT, cost)) * cost
  end
  return m
end

local function find(meters, r)
  for _, m in ipairs(meters) do
    if same_windows(m, r) then return m end
  end
end

local function in_use_of(m, algorithm, now)
  local kind = machine(algorithm)
  if kind == BUCKETS then
    local cost = pace(m)
    return ceil_div(drain_to(m, now, 0), cost)
  end
  if kind == SLIDING then forget(m, now) end
  return m.used
end

local function in_use(s, now)
  local used = 0
  for _, m in ipairs(s.meters) do used = math.max(used, in_use_of(m, s.algorithm, now)) end
  return used
end

local function begin(s, now, used)
  s.algorithm, s.meters = p.algorithm, {}
  for i, r in ipairs(p.rates) do s.meters[i] = meter(r, now, used(r)) end
end

local function roll(s, now)
  local next, leftover = {}, false
  if p.machine == WINDOWS then
    for _, r in ipairs(p.rates) do
      local w = find(s.meters, r)
      if w then
        local m = meter(r, now, 0)
        if w.index == m.index then m.used = w.used end
        next[#next + 1] = m
      end
    end
  end
  for _, w in ipairs(s.meters) do
    if contains(w, now) and not find(next, w) then
      next[#next + 1], leftover = w, true
    end
  end
  if leftover then
    s.meters = next
    return
  end
  begin(s, now, function(r)
    local w = find(next, r)
    return w and w.used or 0
  end)
end

local function convert(s, now)
  local old, was, used = s.meters, s.algorithm, in_use(s, now)
  s.algorithm, s.meters = p.algorithm, {}
  for i, r in ipairs(p.rates) do
    local m = find(old, r)
    if not m then
      s.meters[i] = meter(r, now, used)
    elseif p.machine == SLIDING or m.limit == r.limit then
      local kept = meter(r, now, 0)
      kept.index, kept.used, kept.log = m.index, m.used, m.log
      s.meters[i] = kept
    else
      s.meters[i] = meter(r, now, in_use_of(m, was, now))
    end
  end
end

local function advance(m, now, since)
  if p.machine == SLIDING then forget(m, now) end
  if p.machine == BUCKETS then settle(m, now, since) end
end

local function beat(s)
  if s.algorithm ~= FIXED_WINDOW then
    s.pulse, s.asked, s.before = 0, 0, 0
    return
  end
  local shortest = s.meters[1]
  for _, m in ipairs(s.meters) do
    if m.window < shortest.window then shortest = m end
  end
  if shortest.index == s.pulse then return end
  if shortest.index == s.pulse + 1 then s.before = s.asked else s.before = 0 end
  s.pulse, s.asked = shortest.index, 0
end

local function adopt(s, now, since)
  local old = machine(s.algorithm)
  if #s.meters == 0 then
    begin(s, now, function() return 0 end)
  elseif old == WINDOWS then
    roll(s, now)
  elseif old == p.machine then
    convert(s, now)
  elseif now >= s.expires then
    local used = in_use(s, now)
    begin(s, now, function() return used end)
  end
  s.generation = p.generation
  if machine(s.algorithm) == p.machine then
    for _, m in ipairs(s.meters) do advance(m, now, since) end
  end
  beat(s)
end

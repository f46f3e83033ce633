-- adopt.go.

local moved = not old    -- the windows are others than before
local begun = false      -- the one that is split follows the one before
local waits = false      -- Params.waits
local either = any == 1  -- Params.either

if own then
  for i = 1, #rates do
    local m = rates[i]
    if kind == WINDOWS then
      local number = index(m, now)
      if m.index ~= number then
        begun = number == m.index + 1
        m.index, m.used, moved = number, 0, true
      end
    elseif not old then
      m.index = now
    end
  end
  if moved and not begun then tenants = nil end
else
  local was, first, same = s.algorithm, s.meters[1], machine(s.algorithm) == kind
  local index_before = {}
  for i, m in ipairs(s.meters) do index_before[i] = m.index end

  local function find(meters, r)
    for _, m in ipairs(meters) do
      if same_windows(m, r) then return m end
    end
  end

  local function in_use_of(m)
    if machine(was) == BUCKETS then
      local cost, drain = pace(m)
      return ceil_div(drain_to(m.used, m.index, drain, 0), cost)
    end
    if machine(was) == SLIDING then forget(m) end
    return m.used
  end

  local function in_use()
    local used = 0
    for _, m in ipairs(s.meters) do used = larger(used, in_use_of(m)) end
    return used
  end

  local function meter(r, expires, used)
    local m = {limit = r.limit, window = r.window, burst = r.burst, offset = r.offset, monthly = r.monthly, index = expires, used = 0, log = ''}
    if kind == WINDOWS then
      m.index, m.used = index(r, expires), used
    elseif kind == SLIDING then
      note(m, spent_by(r, expires), used)
    else
      fill(m, used)
    end
    return m
  end

  local function begin()
    s.algorithm, s.meters = algorithm, {}
    for i, r in ipairs(rates) do s.meters[i] = meter(r, now, 0) end
  end

  local function follows()
    if was ~= LEAKY_BUCKET and algorithm ~= LEAKY_BUCKET then return same end
    if was ~= algorithm or #s.meters ~= #rates then return false end
    for _, r in ipairs(rates) do
      local m = find(s.meters, r)
      if not m or m.limit ~= r.limit then return false end
    end
    return true
  end

  local function roll()
    local next, leftover = {}, false
    for _, r in ipairs(rates) do
      local w = find(s.meters, r)
      if w and kind == WINDOWS then
        local m = meter(r, now, 0)
        if w.index == m.index then m.used = w.used end
        next[#next + 1] = m
      end
    end
    for _, w in ipairs(s.meters) do
      if index(w, now) == w.index and not find(next, w) then
        next[#next + 1], leftover = w, true
      end
    end
    if leftover then
      s.meters = next
      return
    end
    if kind ~= WINDOWS then s.began = now end
    begin()
    for i, m in ipairs(s.meters) do s.meters[i] = find(next, m) or m end
  end

  local function convert()
    local old_meters, used, expires = s.meters, in_use(), larger(now, s.expires)
    if generation > s.generation then s.began = now end
    s.algorithm, s.meters = algorithm, {}
    for i, r in ipairs(rates) do
      local m = find(old_meters, r)
      if not m then
        s.meters[i] = meter(r, expires, used)
      elseif kind == SLIDING or m.limit == r.limit then
        s.meters[i] = meter(r, now, 0)
        s.meters[i].index, s.meters[i].used, s.meters[i].log = m.index, m.used, m.log
      else
        s.meters[i] = meter(r, expires, in_use_of(m))
      end
    end
  end

  -- From here to the end of succeed: succeed.go.
  local function spent(list, span)
    local most = 0
    for _, m in ipairs(list) do
      local units
      if machine(was) == SLIDING then
        forget(m)
        units = m.used
        if span > m.window then
          units = larger(units, smaller(floor(MAX_EXACT / m.limit), ceil_div(span, m.window)) * m.limit)
        end
      else
        local cost, drain = pace(m)
        local level = drain_to(m.used, m.index, drain, 0)
        if span > floor((MAX_EXACT - level) / drain) then
          units = floor(MAX_EXACT / cost)
        else
          units = ceil_div(level + span * drain, cost)
        end
      end
      most = larger(most, units)
    end
    return most
  end

  local function recall_sum(m, list)
    local parts = 16
    local part = ceil_div(m.window, parts)
    for i = parts, 1, -1 do
      note(m, spent_by(m, now - (i - 1) * part), spent(list, i * part) - spent(list, (i - 1) * part))
    end
    note(m, spent_by(m, now), spent(list, 0))
  end

  local function succeed()
    local list = s.meters
    s.began = now
    begin()
    for _, m in ipairs(s.meters) do
      if kind == WINDOWS then
        m.used = spent(list, now - start(m, m.index))
      elseif kind == SLIDING then
        recall_sum(m, list)
      else
        fill(m, spent(list, 0))
      end
    end
  end

  if was == FIXED_WINDOW then
    roll()
  elseif follows() then
    convert()
  elseif now > s.expires then
    succeed()
  else
    waits = true
  end

  s.generation = generation
  own = s.algorithm == algorithm and #s.meters == #rates
  either = either and machine(s.algorithm) == kind and #s.meters == #rates
  for i, r in ipairs(rates) do
    local m = s.meters[i]
    local same_rate = m ~= nil and same_windows(m, r)
    either = either and same_rate
    own = own and same_rate and m.limit == r.limit and m.burst == r.burst
  end

  moved = pack_head(s) ~= old_head
  for i, m in ipairs(s.meters) do
    moved = moved or s.algorithm == FIXED_WINDOW and m.index ~= index_before[i]
  end
  local m = s.meters[1]
  begun = m.index == index_before[1] + 1
  if not same_windows(m, first) or m.index ~= index_before[1] and not begun then tenants = nil end
end

local meters, kind_now = s.meters, machine(s.algorithm)
local fair = default > 0 and #meters == 1 and kind_now == WINDOWS
if not fair then tenants = nil end

-- advance brings meters without windows to now.
local function advance()
  if waits then return end
  for i = 1, #meters do
    local m = meters[i]
    if kind_now == SLIDING then
      forget(m)
      m.index = larger(m.index, now)
    elseif kind_now == BUCKETS then
      settle(m)
    end
  end
end

if kind_now == WINDOWS then
  local shortest = meters[1]
  for i = 2, #meters do
    if meters[i].window < shortest.window then shortest = meters[i] end
  end
  if shortest.index ~= s.pulse then
    s.before = shortest.index == s.pulse + 1 and s.asked or 0
    s.pulse, s.asked = shortest.index, 0
  end
else
  s.pulse, s.asked, s.before = 0, 0, 0
  advance()
end

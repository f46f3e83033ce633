-- take.go.

-- either says that one meter that admits is enough.
local function either(s) return p.any and machine(s.algorithm) == p.machine end

local function read_meter(s, m, now, since)
  local kind = machine(s.algorithm)
  if kind == WINDOWS then
    return {limit = m.limit, left = math.max(0, m.limit - m.used), resets = end_of(m) - now, forgotten = start_of(m) < since}
  end
  if kind == SLIDING then
    local r = {limit = m.limit, left = math.max(0, m.limit - m.used), resets = log_ends(m, now), forgotten = false}
    if since > 0 then
      local ends = spent_by(m, since) + m.window - now
      if ends > 0 then
        r.forgotten, r.knows_in, r.resets = true, ends, math.max(r.resets, ends)
      end
    end
    return r
  end
  local cost, drain = pace(m)
  return {
    limit = capacity(m), left = floor_div(math.max(0, brim(m) - m.used), cost),
    resets = ceil_div(math.max(0, m.used - p.lifetime * drain), drain), forgotten = false,
  }
end

local function wait_of(s, m, r, now, amount)
  if amount > r.limit and either(s) then return MAX_WINDOW end
  local kind = machine(s.algorithm)
  if kind == WINDOWS then return (r.forgotten or r.left < amount) and r.resets or 0 end
  if kind == SLIDING then return math.max(sliding_wait(m, now, amount), r.knows_in or 0) end
  return bucket_wait(m, amount)
end

-- combine returns which of two readings binds: of meters that all have to admit
-- the least, of meters of which one has to the most.
local function combine(s, r, o)
  local binding = r
  if either(s) then
    if o.left > r.left or o.left == r.left and o.resets < r.resets then binding = o end
    binding.all_forgotten = r.all_forgotten and o.all_forgotten
  else
    if o.left < r.left or o.left == r.left and o.resets > r.resets then binding = o end
    binding.all_forgotten = r.all_forgotten or o.all_forgotten
  end
  return binding
end

-- read_all is Params.read without the wait, which only a refusal needs.
local function read_all(s, now, since)
  local all
  for _, m in ipairs(s.meters) do
    local r = read_meter(s, m, now, since)
    r.all_forgotten = r.forgotten
    if r.forgotten then r.left = 0 end
    all = all and combine(s, all, r) or r
  end
  return all
end

-- wait returns how long it takes until so many units are left.
local function wait(s, now, amount, since)
  local longest, shortest = 0, math.huge
  for _, m in ipairs(s.meters) do
    local r = read_meter(s, m, now, since)
    local w = wait_of(s, m, r, now, amount)
    longest, shortest = math.max(longest, w), math.min(shortest, w)
  end
  return either(s) and shortest or longest
end

local function too_large(amount)
  local large = 0
  for _, r in ipairs(p.rates) do
    local most = p.machine == BUCKETS and capacity(r) or r.limit
    if amount > most then large = large + 1 end
  end
  return large == #p.rates or large > 0 and not p.any
end

local function fair_part(s, left) return ceil_div(left, math.max(0, s.before - s.asked) + 1) end

local function charge(s, now, amount, res)
  for _, m in ipairs(s.meters) do
    local part = amount
    if either(s) then part = math.min(part, read_meter(s, m, now, 0).left) end
    if part > 0 then
      if s.algorithm == FIXED_WINDOW then
        m.used = m.used + part
      elseif p.machine == SLIDING then
        note(m, spent_by(m, now), part)
      else
        m.used = m.used + part * pace(m)
        if s.algorithm == LEAKY_BUCKET then res.delay = math.max(res.delay or 0, delay(m)) end
      end
    end
  end
  if s.algorithm ~= FIXED_WINDOW then s.expires = math.max(s.expires, now + p.lifetime) end
end

local function describe(s, now, since, res)
  local r = read_all(s, now, since)
  res.limit, res.remaining, res.reset_after = r.limit, r.left, r.resets
  if s.algorithm ~= FIXED_WINDOW then
    res.expires_in = p.lifetime
    return
  end
  res.expires_in = MAX_WINDOW
  for _, w in ipairs(s.meters) do res.expires_in = math.min(res.expires_in, end_of(w) - now) end
end

local function take(s, now, since)
  local res = {algorithm = s.algorithm, granted = 0}
  if c.first == 1 and s.algorithm == FIXED_WINDOW then s.asked = s.asked + 1 end
  if s.algorithm ~= FIXED_WINDOW and machine(s.algorithm) ~= p.machine then
    res.reason, res.retry_after = EXHAUSTED, s.expires - now
    res.reset_after, res.limit = res.retry_after, p.rates[1].limit
    return res
  end
  local r = read_all(s, now, since)
  if too_large(c.min) then
    res.reason = TOO_LARGE
  elseif r.left < c.min then
    res.reason, res.retry_after = r.all_forgotten and AMNESIA or EXHAUSTED, wait(s, now, c.min, since)
  else
    res.reason, res.granted = GRANTED, math.max(c.min, math.min(c.want, fair_part(s, r.left)))
    charge(s, now, res.granted, res)
  end
  describe(s, now, since, res)
  return res
end

-- share.go and fill.go.

-- part returns the weight's part of a whole. The product might not be exact; those of
-- what the first division leaves are.
local function part(whole, weight, weights)
  local rest = math.fmod(whole, weights)
  return (whole - rest) / weights * weight + quotient(rest * weight, weights)
end

local function divide(claims, whole)
  local rest, nominal, weights, met, unmet = whole, 0, 0, 0, 0
  for _, o in ipairs(claims) do
    if o.settled then
      rest = rest - o.gets
    else
      nominal, weights = nominal + o.nominal, weights + o.weight
      met, unmet = met + o.met, unmet + o.unmet
    end
  end
  rest = larger(0, rest)
  for _, o in ipairs(claims) do
    if o.settled then -- keeps what it gets
    elseif rest < nominal then
      o.share = smaller(o.nominal, part(rest, o.weight, weights))
    elseif rest - nominal < met then
      o.share = o.nominal + part(rest - nominal, o.weight, weights)
    else
      o.share = o.nominal + o.met + part(rest - nominal - met, o.unmet, unmet)
    end
  end
  return rest
end

-- fill ends when a round settles nobody: those that would follow find the same.
local function fill(claims, whole)
  local moved = true
  while moved do
    local beyond = -divide(claims, whole)
    for _, o in ipairs(claims) do
      if not o.settled then
        o.gets = larger(o.low, smaller(o.high, o.share))
        beyond = beyond + o.gets
      end
    end
    moved = false
    for _, o in ipairs(claims) do
      if not o.settled and (beyond > 0 and o.gets > o.share or beyond <= 0 and o.gets < o.share) then
        o.settled, moved = true, true
      end
    end
  end
end

local function has(m) return granted_to(m.name) + sliced(m) end

local function claim(m, certain)
  local o = {weight = m.weight, met = 0, unmet = m.weight, nominal = m.nominal, has = has(m)}
  local wants, t = 0, s.by[m.name]
  if t then
    wants = larger(t.demand, t.before)
    if t.weight > 0 then o.weight, o.unmet = t.weight, t.weight end
    if t.unmet > 0 then o.met, o.unmet = t.met, t.unmet end
  end
  if m.borrowing >= 0 then wants = smaller(wants, m.nominal + m.borrowing) end
  o.low, o.high = o.has, larger(o.has, larger(m.kept, wants))
  if certain then o.low = larger(o.has, m.kept) end
  o.gets, o.share = o.low, 0
  return o
end

-- claims_of returns what each member claims, and what there is to divide among them.
local function claims_of()
  local whole, nominal, claims = s.limit - taken(), 0, {}
  for _, m in ipairs(p.members) do
    whole, nominal = whole + has(m), nominal + m.nominal
  end
  for i, m in ipairs(p.members) do claims[i] = claim(m, nominal <= whole) end
  return claims, whole
end

-- room returns how much more the member of the command may be granted now.
local function room()
  local m = p.by[c.member]
  if not m then return 0 end
  local claims, whole = claims_of()
  local own, free = claims[m.place], s.limit - taken()
  if p.strategy == STATIC then
    divide(claims, whole)
    free = smaller(free, own.share - own.has)
  else
    if p.strategy == FAIR_SHARE then
      own.high = larger(own.has, whole)
      fill(claims, whole)
    end
    for _, o in ipairs(claims) do
      if o ~= own then free = free - (o.gets - o.has) end
    end
  end
  if m.borrowing >= 0 then free = smaller(free, m.nominal + m.borrowing - own.has) end
  return larger(0, free)
end

-- fairness.go.

local MAX_TENANTS, OTHER_TENANTS = 1024, '*'

local weights, account, whole -- of the declared tenants; of who asks; of all
local declared = 0            -- the sum of weights

-- split finds the account of who asks and what shares the window with it.
local function split()
  local others = 0
  account = ARGV[4]
  for t in pairs(tenants or {}) do
    if not weights[t] then others = others + 1 end
  end
  local known_already = weights[account] or tenants and tenants[account]
  if not known_already and others >= MAX_TENANTS then account = OTHER_TENANTS end
  known_already = weights[account] or tenants and tenants[account]
  whole = declared + (known_already and others or others + 1) * default
end

-- share returns what the account was granted and can still get.
local function share(m, amount)
  local free, kept, lent, used = larger(0, m.limit - m.used), 0, 0, 0
  local other = floor(default * m.limit / whole)
  local guarantee = other
  for t, weight in pairs(weights) do
    local part = floor(weight * m.limit / whole)
    if t == account then
      guarantee = part
    else
      kept = kept + larger(0, part - (tenants and tenants[t] or 0))
    end
  end
  for t, granted in pairs(tenants or {}) do
    if t == account then
      used = granted
    elseif not weights[t] then
      lent = lent + larger(0, other - granted)
    end
  end
  local due = smaller(larger(0, guarantee - used), larger(0, free - kept))
  local spare = larger(0, free - kept - lent)
  return used, smaller(larger(due, spare), larger(0, guarantee + amount - used))
end

-- never_fits reports an amount that who asks cannot get even when it is the first
-- to ask in a window.
local function never_fits(limit, amount)
  local all, kept = declared + (weights[ARGV[4]] and 0 or default), 0
  for t, weight in pairs(weights) do
    if t ~= ARGV[4] then kept = kept + floor(weight * limit / all) end
  end
  return amount > limit - kept
end

if default > 0 then
  weights = cmsgpack.unpack(ARGV[5])
  for _, weight in pairs(weights) do declared = declared + weight end
  if fair then split() end
end

-- calendar.go: the number of a window and where it starts.

-- months returns monthOf and firstDay.
local function months()
  local function month_of(day)
    day = day + 719468
    local era = floor(day / 146097)
    local of_era = day - era * 146097
    local year = floor((of_era - floor(of_era / 1460) + floor(of_era / 36524) - floor(of_era / 146096)) / 365)
    local of_year = of_era - (365 * year + floor(year / 4) - floor(year / 100))
    return (era * 400 + year) * 12 + floor((5 * of_year + 2) / 153) + 2
  end
  local function first_day(month)
    month = month - 2
    local year = floor(month / 12)
    local of_year, era = month - 12 * year, floor(year / 400)
    local of_era = year - era * 400
    return era * 146097 + of_era * 365 + floor(of_era / 4) - floor(of_era / 100) + floor((153 * of_year + 2) / 5) - 719468
  end
  return month_of, first_day
end

local DAY = 24 * 3600 * 1000000

local function index(r, at)
  if r.monthly == 1 then
    local month_of = months()
    return month_of(floor((at + r.offset) / DAY))
  end
  return floor((at + r.offset) / r.window)
end

local function start(r, number)
  if r.monthly == 1 then
    local _, first_day = months()
    return first_day(number) * DAY - r.offset
  end
  return number * r.window - r.offset
end

local function ceil_div(a, b)
  local q = floor(a / b)
  return q * b < a and q + 1 or q
end

local function same_windows(r, o)
  return r.window == o.window and r.offset == o.offset and r.monthly == o.monthly
end

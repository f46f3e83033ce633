package limiter

// Day is the length of a day without leap seconds, which Unix time does not have.
const Day = 24 * 3600 * Second

// index returns the number of the window that contains now. It counts months since
// the year 0.
func (r Rate) index(now Instant) int64 {
	local := int64(now) + int64(r.Offset)
	if r.Monthly {
		return monthOf(floorDiv(local, int64(Day)))
	}
	return floorDiv(local, int64(r.Window))
}

// start returns the first instant of window number index.
func (r Rate) start(index int64) Instant {
	if r.Monthly {
		return Instant(firstDay(index)*int64(Day) - int64(r.Offset))
	}
	return Instant(index*int64(r.Window) - int64(r.Offset))
}

// monthOf returns the month, counted from January of the year 0, of a day counted
// from 1970-01-01. Years begin in March here, so that the leap day comes last
// (Hinnant, "chrono-Compatible Low-Level Date Algorithms").
func monthOf(day int64) int64 {
	day += 719_468 // from 0000-03-01
	era := floorDiv(day, 146_097)
	ofEra := day - era*146_097
	year := (ofEra - ofEra/1_460 + ofEra/36_524 - ofEra/146_096) / 365
	ofYear := ofEra - (365*year + year/4 - year/100)
	month := (5*ofYear + 2) / 153 // 0 is March
	return (era*400+year)*12 + month + 2
}

// firstDay returns the first day, counted from 1970-01-01, of a month counted from
// January of the year 0.
func firstDay(month int64) int64 {
	month -= 2 // from March of the year 0
	year, ofYear := floorDiv(month, 12), month-12*floorDiv(month, 12)
	era := floorDiv(year, 400)
	ofEra := year - era*400
	return era*146_097 + ofEra*365 + ofEra/4 - ofEra/100 + (153*ofYear+2)/5 - 719_468
}

// ceilDiv divides and rounds up; neither is negative. It forms no sum, so that it
// is exact in a Lua number too.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

// floorDiv divides and rounds down; b is positive.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

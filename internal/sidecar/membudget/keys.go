package membudget

// KeyMemory is the part of a budget for keys of limits. They take as much as is left at most, so
// no more than half of the budget; counters that keys share take twice as much. See fairness.
type KeyMemory struct{ budget *Budget }

// ForKeys returns the part for keys.
func (b *Budget) ForKeys() KeyMemory { return KeyMemory{b} }

// Take implements twotier.Memory.
func (m KeyMemory) Take(n int64, shared bool) bool {
	if shared {
		return m.budget.takePart(Keys, n, 2)
	}
	return m.budget.takePart(Keys, n, 1)
}

// Give implements twotier.Memory.
func (m KeyMemory) Give(n int64) { m.budget.Give(Keys, n) }

// CountMemory is the part of a budget for counts of keys. They take half as much as is left at
// most.
type CountMemory struct{ budget *Budget }

// ForCounts returns the part for counts.
func (b *Budget) ForCounts() CountMemory { return CountMemory{b} }

// Take implements count.Memory.
func (m CountMemory) Take(n int64) bool { return m.budget.takePart(Counts, n, 0.5) }

// Give implements count.Memory.
func (m CountMemory) Give(n int64) { m.budget.Give(Counts, n) }

// takePart takes n bytes for the class while it has at most that many times what is left.
func (b *Budget) takePart(c Class, n int64, times float64) bool {
	taken := b.taken[c].Add(n)
	left := b.size - b.size/reservedPart - b.total()
	if float64(taken) <= times*float64(left) {
		return true
	}
	b.taken[c].Add(-n)
	b.refused[c].Add(1)
	return false
}

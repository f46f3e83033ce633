// Package counters keeps budgets with a key in a store of counters that all regions reach,
// as pkg/store/redis and postgres: one counter for each value and window.
//
// Each region's process has a Coordinator, and no one of them keeps anything: the store
// decides by its own clock, and what it may have forgotten it does not grant again. Regions
// that name different limits, as they do while an edit reaches one after the other, may
// be granted up to the largest of them in a window. Budgets with slices cannot be kept so.
package counters

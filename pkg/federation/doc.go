// Package federation lets a region use its part of a budget that several regions
// share: the engine between the holders of a region (L1) and the coordinator of the
// budget (L3).
//
// A Region is one process's view of one budget. To the holders it is a store like any
// other. It keeps what the coordinator granted in the region's escrow (L2), and leases
// more when that runs out or is about to.
package federation

// Package proof holds no code. The packages below it prove what the documentation promises: by
// exhaustive search, by simulation in virtual time, by tables of faults, and by rules of imports.
//
// They drive the production code, and may import all of it. They never ship: no program below
// cmd and no package of the product imports them.
package proof

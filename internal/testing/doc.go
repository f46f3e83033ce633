// Package testing holds no code. The packages below it help tests, the demo and the programs that
// measure: a cluster as processes on one machine, servers, containers' memory, plots.
//
// They may import packages of the product. No program below cmd and no package of the product
// imports them.
package testing

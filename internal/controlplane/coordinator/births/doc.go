// Package births knows which limits are new. A limit that is put in force for the first time has
// nothing that a store may have forgotten. Its birth is written down before any sidecar is sent
// the limit, and stays until the limit is gone and its longest window with it. So it is not taken
// for new again by a later leader, or after it was deleted and created again.
package births

// Package jwks reads the key sets of issuers of tokens by their URLs, for the controller.
// Everybody who may write policies names these URLs, so each reading is bounded in time and
// in bytes, no redirect is followed, no proxy of the environment is used, a namespace has
// its own readings and few of them, and texts for statuses repeat nothing that a server sent.
package jwks

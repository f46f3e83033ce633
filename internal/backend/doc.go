// Package backend opens the stores that policies name, by what a policy says of
// them and the values of the Secret it names. Controller and sidecars open them
// alike, so what the one found to work works for the others. They keep open stores
// behind a Handle, which outlives a change of the credentials.
package backend

// Package resolve answers what a pod has to enforce, from the informer cache and
// the translation of policies. It never answers from a part of the policies:
// where it cannot know all of them it fails, and whoever asked keeps what it has.
package resolve

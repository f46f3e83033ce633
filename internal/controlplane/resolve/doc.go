// Package resolve answers what a pod has to enforce, from the informer cache and
// the translation of policies. It never takes a part of the policies for the whole:
// where it cannot know all of them it fails. Where some cannot be enforced it returns an
// error as well, and a caller that has something better keeps that.
package resolve

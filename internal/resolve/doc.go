// Package resolve answers what a pod has to enforce, from the informer cache and
// the translation of policies. It never takes a part of the policies for the whole:
// where it cannot know all of them it fails, and where some cannot be enforced it says
// so, and a caller that has something better keeps that.
package resolve

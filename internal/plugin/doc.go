// Package plugin holds the commands of the kubectl plugin. They read the cluster and files; only
// brake, release and reset change an object. They judge by the packages that the controller
// and the sidecar run, so they cannot differ from these in what is selected, matched or counted.
package plugin

// Package plugin holds the commands of the kubectl plugin. They read the cluster and files,
// and write nothing there. They judge by the packages that the controller and the sidecar
// run, so they cannot differ from these in what is selected, matched or counted.
package plugin

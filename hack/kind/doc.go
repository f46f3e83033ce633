// Command kind runs a Kubernetes cluster in containers on this machine, and
// provides what that needs: a Docker engine and a node image.
//
//	go run ./hack/kind up    [-name weir] [-workers 2] [-pods PREFIX] [-kubeconfig FILE]
//	go run ./hack/kind load  [-name weir] ARCHIVE ...
//	go run ./hack/kind kubeconfig [-name weir]
//	go run ./hack/kind down  [-name weir] [-kubeconfig FILE]
//	go run ./hack/kind check
//	go run ./hack/kind image
//
// Up creates a cluster, in the place of one that has the name. Load puts
// images into its nodes, from archives as `docker save` writes them. Kubeconfig prints
// the file with its credentials. Down deletes it.
// Check reports whether this machine can run one. Image provides the node image
// and prints its name. Progress goes to standard error.
package main

// Command image builds a program for each architecture and packs it into a container
// image that holds nothing else:
//
//	go -C hack/image run . -name weir-controller -package ./cmd/controller -version v1.2.3
//
// The program is the entrypoint, at the root of an empty file system, and runs as user
// 65532. Beside it lie the certificate authorities that programs look for in a system:
// a store or a collector of traces may have a certificate of a public one.
//
// Two builds of one commit with one release of Go have one digest: no time stamp, no path of the machine and no
// state of the version control system comes in.
//
// It writes NAME, an OCI layout with an index of all architectures, as `skopeo copy` or
// `crane push` take it, and NAME.tar, an archive of this machine's architecture, as
// `docker load` and `ctr images import` take it.
//
// Programs that are passed on without an image need the licences of the modules in them, too:
//
//	go -C hack/image run . licences ../../dist/plugins/kubectl-weir_linux_amd64
//
// writes kubectl-weir_linux_amd64.licences beside the program.
package main

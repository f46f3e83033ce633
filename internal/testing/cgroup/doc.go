// Package cgroup gives processes of tests a container's limit of memory. It needs the rights of
// root, and works with either version of cgroups.
package cgroup

// Package pages gives back the memory that a program needs only to start. Most code and
// data of a program's file is read once, by initializers, and stays mapped. In a sidecar
// that is two thirds of the resident memory, in every pod.
package pages

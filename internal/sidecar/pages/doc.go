// Package pages gives back the memory that a program needs only to start. Most code and
// data of a program's file is read once, by initializers, and stays mapped: of a sidecar
// two thirds of what is resident, in every pod.
package pages

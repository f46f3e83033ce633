// Package monotonic reads instants for deadlines: a clock that never steps and never
// goes back, and that counts the time for which the machine was suspended.
//
// The monotonic clock of the system stands still while the machine is suspended, so a
// deadline that is counted on it would come too late. A watchdog compares it with the
// clock that does not stand still, and moves instants forward by what they part. On
// Linux it does so when the kernel reports a resume, if the program listens, and else
// every 10 ms. Code that runs between a resume and the comparison still sees the
// instant of the suspension. Elsewhere, and where a hypervisor stops a machine without
// a report, a suspension is not noticed.
package monotonic

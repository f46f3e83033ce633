// Package trace reports to a collector what became of single requests, by OpenTelemetry.
// Each request that a port served has one span, which continues the trace that the
// request came with (W3C Trace Context) and is the parent of the app's.
//
// Tracing is optional. All methods may be called on a nil Tracer, which hands back
// what it is given, so a sidecar that traces nothing has nothing of it on its path.
//
// No request ever waits for a collector: spans that ended stand in a bounded queue,
// and those that find it full are lost.
package trace

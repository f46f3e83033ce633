// Package fleet connects a sidecar to the leading controller: one stream carries
// policies and holders down, acknowledgements, reports and leases up. The stream
// is opened again whenever it breaks; meanwhile the sidecar goes on with what it
// has, and the Controller store is unavailable.
package fleet

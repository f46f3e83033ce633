// Package fleet connects a sidecar to the leading controller: one stream carries
// policies and holders down, acknowledgements, reports, leases and the beats of pools
// up. Beats pass all that waits to be sent. The stream is opened again whenever it
// breaks; meanwhile the sidecar goes on with what it has, and the Controller store is
// unavailable.
package fleet

// Package admin serves what people and machines look at: metrics, readiness and
// the configuration in force. It shows no secret and no key.
package admin

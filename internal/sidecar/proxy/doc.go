// Package proxy is the reverse proxy in front of the app: it lets through what
// the decider admits, unchanged, and answers the rest itself.
package proxy

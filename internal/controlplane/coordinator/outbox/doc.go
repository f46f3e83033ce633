// Package outbox holds messages that wait to be sent to one of thousands of receivers, most of
// which are sent nothing for minutes: it takes next to no memory while nothing waits.
package outbox

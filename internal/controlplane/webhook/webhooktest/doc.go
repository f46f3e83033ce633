// Package webhooktest makes reviews that are hostile to webhooks, for the tests of package
// webhook and for those of the whole system.
package webhooktest

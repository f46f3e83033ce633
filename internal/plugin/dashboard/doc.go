// Package dashboard serves a page that shows the policies, pools and budgets of a cluster while they
// work. It only reads, needs no other server, and its page loads nothing from elsewhere.
package dashboard

package hub

import "fmt"

// Reason says why a hub does not serve a member, in the words of the condition
// Connected.
type Reason string

// The reasons.
const (
	// Unauthorized: the hub does not accept the certificate or the token.
	Unauthorized Reason = "Unauthorized"
	// Untrusted: the member does not accept the certificate of the server that answers at the
	// endpoint.
	Untrusted Reason = "Untrusted"
	// CertificateExpired: the member's certificate is not valid any more.
	CertificateExpired Reason = "CertificateExpired"
	// UnknownBudget: the hub keeps no budget of that id.
	UnknownBudget Reason = "UnknownBudget"
	// UnknownMember: the hub's budget does not list the member.
	UnknownMember Reason = "UnknownMember"
	// Mismatched: the hub's budget has windows of another length or other additional rates, or only
	// one of both has a key.
	Mismatched Reason = "Mismatched"
	// Invalid: the hub does not understand what it is sent; the two run versions of
	// Weir that do not fit, or one of them has a defect.
	Invalid Reason = "Invalid"
)

// A RefusedError says that a hub is there and does not serve this member. That lasts
// until somebody changes something; the text says what.
type RefusedError struct {
	Endpoint string // of the hub
	Reason   Reason
	Message  string // a sentence of this project that names the cure; nothing that the hub sent
	Cause    error  // what the hub sent, for logs alone; nil when that was nothing
}

// Error names the hub, and what to do.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("hub %s: %s: %s", e.Endpoint, e.Reason, e.Message)
}

// Detailed returns the text with what the hub sent, for logs.
func (e *RefusedError) Detailed() string {
	if e.Cause == nil {
		return e.Error()
	}
	return e.Error() + ": " + e.Cause.Error()
}

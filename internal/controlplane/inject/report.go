package inject

// Reason says in one word why a pod was or was not injected. Reasons are stable:
// Events carry them and users match on them.
type Reason string

// The reasons of a Report.
const (
	Injected            Reason = "Injected"
	AlreadyInjected     Reason = "AlreadyInjected"     // the sidecar is there
	NotOptedIn          Reason = "NotOptedIn"          // neither the pod nor its namespace asks for a sidecar
	DisabledByPod       Reason = "DisabledByPod"       // the pod opts out
	DisabledByNamespace Reason = "DisabledByNamespace" // the namespace opts out, which no pod overrides
	MalformedInject     Reason = "MalformedInject"     // neither enabled nor disabled, so nobody knows what is wanted
	HostNetwork         Reason = "HostNetwork"         // the sidecar's ports would be the node's
	StaticPod           Reason = "StaticPod"           // the kubelet runs it from a file, which admission cannot change
	WindowsPod          Reason = "WindowsPod"          // the sidecar is a Linux program
	NameTaken           Reason = "NameTaken"           // another container has the name of one of ours
	ForeignSidecar      Reason = "ForeignSidecar"      // the pod claims to be injected, and its sidecar is not ours
	PortTaken           Reason = "PortTaken"           // another container declares the check API's port
	TooLarge            Reason = "TooLarge"            // the pod is beyond a bound; created without a sidecar, it would not be limited
	RunsToCompletion    Reason = "RunsToCompletion"    // a sidecar in the classic form would keep the pod from finishing
)

// Capture says how requests come to the sidecar.
type Capture string

// The kinds of capture.
const (
	CaptureRedirect Capture = "redirect" // the pod's network leads connections to it
	CapturePort     Capture = "port"     // by the name of the app's port
	CaptureExplicit Capture = "explicit" // only where the app asks the check API

	// CaptureAuto is a choice and no kind: redirect where the pod may have it, else
	// port.
	CaptureAuto Capture = "auto"

	// CaptureNone is what a sidecar is configured with that no request comes to, though
	// nobody chose that.
	CaptureNone Capture = "none"
)

// Captures are the values that a user may choose.
var Captures = []Capture{CaptureAuto, CaptureRedirect, CapturePort, CaptureExplicit}

// Form says as what the sidecar is in the pod.
type Form string

// The forms.
const (
	Native  Form = "native"  // an init container that keeps running
	Classic Form = "classic" // the first of the containers
)

// A Port is one port of the app that the sidecar stands in front of.
type Port struct {
	Name   string `json:"name,omitempty"` // that Services target; always there with CapturePort
	Listen int32  `json:"listen"`         // of the sidecar
	App    int32  `json:"app"`            // of the app
}

// A Report says what Inject did and why.
type Report struct {
	Injected bool   `json:"injected"`
	Reason   Reason `json:"reason"`
	Message  string `json:"message"` // a sentence for people

	Capture Capture `json:"capture,omitempty"` // of an injected pod
	Form    Form    `json:"form,omitempty"`    // of an injected pod
	Ports   []Port  `json:"ports,omitempty"`   // of CaptureRedirect and CapturePort, in the order of their listeners

	// Warnings are sentences on values that were not used, and on traffic that
	// goes past the sidecar. They do not prevent injection.
	Warnings []string `json:"warnings,omitempty"`
}

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
	NameTaken           Reason = "NameTaken"           // another container has the sidecar's name
	PortTaken           Reason = "PortTaken"           // another container declares the check API's port
)

// Capture says how requests come to the sidecar.
type Capture string

// The kinds of capture.
const (
	CapturePort     Capture = "port"     // by the name of the app's port
	CaptureExplicit Capture = "explicit" // only where the app asks the check API
)

// A Port is one port of the app that the sidecar stands in front of.
type Port struct {
	Name   string `json:"name"`   // that Services target
	Listen int32  `json:"listen"` // of the sidecar
	App    int32  `json:"app"`    // of the app
}

// A Report says what Inject did and why.
type Report struct {
	Injected bool   `json:"injected"`
	Reason   Reason `json:"reason"`
	Message  string `json:"message"` // a sentence for people

	Capture Capture `json:"capture,omitempty"` // of an injected pod
	Ports   []Port  `json:"ports,omitempty"`   // of CapturePort, in the order of their listeners

	// Warnings are sentences on values that were not used, and on traffic that
	// goes past the sidecar. They do not prevent injection.
	Warnings []string `json:"warnings,omitempty"`
}

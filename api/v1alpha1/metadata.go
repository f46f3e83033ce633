package v1alpha1

// Labels and annotations. A weir.dev/ key is a choice a user makes, a
// config.weir.dev/ key tunes the sidecar, and a status.weir.dev/ key is
// written by Weir alone.
const (
	// InjectionLabel on a namespace opts its pods in (Enabled), or out (Disabled),
	// which no pod overrides.
	InjectionLabel = "weir.dev/injection"

	// InjectKey on a pod, as annotation or label, opts that pod in (Enabled) or
	// out (Disabled). The annotation wins over the label, and the pod over a
	// namespace that is not Disabled.
	InjectKey = "weir.dev/inject"

	// ModeAnnotation on a pod overrides the mode of every policy there:
	// ModeEnforce (as the policies say), ModeShadow or ModeBypass.
	ModeAnnotation = "weir.dev/mode"

	// ResetAnnotation on a RateLimitPolicy sets a limit back: limit@request for
	// all its counters, or limit=value@request for that of one value of its key,
	// whose parts are separated by commas and encoded as in a URL. Request is
	// anything that was not there before, such as the time. It takes the verb
	// reset on ratelimitpolicies.
	ResetAnnotation = "weir.dev/reset"

	// EnforcerLabel with the value "true" marks the pods that carry a sidecar. It
	// is written by the injector.
	EnforcerLabel = "weir.dev/enforcer"

	// InjectedAnnotation records on a pod, as JSON, what was injected.
	InjectedAnnotation = "status.weir.dev/injected"
)

// Values of InjectionLabel and InjectKey.
const (
	Enabled  = "enabled"
	Disabled = "disabled"
)

// Values of ModeAnnotation.
const (
	ModeEnforce = "enforce" // as each policy says
	ModeShadow  = "shadow"  // every policy counts its refusals and lets requests pass
	ModeBypass  = "bypass"  // requests pass without being counted
)

// Annotations that tune the sidecar of a pod, or of the pods of a namespace
// that do not say otherwise.
const (
	// CaptureAnnotation says how requests come to the sidecar: redirect (the pod's
	// network leads connections to it), port (it takes over the name of the app's
	// port), explicit (the app asks the check API) or auto (redirect where the pod
	// may have it, else port).
	CaptureAnnotation = "config.weir.dev/capture"

	// NativeSidecarAnnotation says in which form the sidecar is put in: enabled
	// (an init container that keeps running), disabled (the classic form, a
	// container beside the app's) or auto (the former where the cluster knows it).
	NativeSidecarAnnotation = "config.weir.dev/native-sidecar"

	// InboundPortsAnnotation lists the app's ports to limit, numbers or names
	// separated by commas. Absent: the ports that speak HTTP by name or
	// appProtocol.
	InboundPortsAnnotation = "config.weir.dev/inbound-ports"

	// SkipInboundPortsAnnotation lists the app's ports to leave alone.
	SkipInboundPortsAnnotation = "config.weir.dev/skip-inbound-ports"

	// ShutdownGracePeriodAnnotation is how long the sidecar goes on serving after
	// it was asked to stop, a duration such as 30s.
	ShutdownGracePeriodAnnotation = "config.weir.dev/shutdown-grace-period"

	// UnderscoresAnnotation is what becomes of header fields with underscores in
	// their names: drop (default), pass or refuse.
	UnderscoresAnnotation = "config.weir.dev/underscores"

	// CheckSocketAnnotation is enabled where the check API is also served on a Unix
	// socket, /var/run/weir.dev/check.sock in the containers that run beside the
	// sidecar; disabled (default) where it is not.
	CheckSocketAnnotation = "config.weir.dev/check-socket"

	// The sidecar's resources, Kubernetes quantities.
	SidecarCPURequestAnnotation    = "config.weir.dev/sidecar-cpu-request"
	SidecarCPULimitAnnotation      = "config.weir.dev/sidecar-cpu-limit"
	SidecarMemoryRequestAnnotation = "config.weir.dev/sidecar-memory-request"
	SidecarMemoryLimitAnnotation   = "config.weir.dev/sidecar-memory-limit"
)

package policy

// The values of the secret that Store.Secret names. Each may be missing.
const (
	SecretUsername = "username"
	SecretPassword = "password"

	SecretSentinelUsername = "sentinel-username" // of Sentinels, which have users of their own
	SecretSentinelPassword = "sentinel-password"

	SecretAuthority   = "ca.crt"  // PEM, of who signs the server's certificate; the system's when missing
	SecretCertificate = "tls.crt" // PEM, of the client
	SecretPrivateKey  = "tls.key" // PEM, of the client
)

package policy

import "maps"

// The values of the secret that Store.Secret names. Each may be missing.
const (
	SecretUsername = "username"
	SecretPassword = "password"

	SecretSentinelUsername = "sentinel-username" // of Sentinels, which have users of their own
	SecretSentinelPassword = "sentinel-password"

	SecretAuthority   = "ca.crt"  // PEM, of the signer of the server's certificate; the system's when missing
	SecretCertificate = "tls.crt" // PEM, of the client
	SecretPrivateKey  = "tls.key" // PEM, of the client
)

// Credentials returns what a store reads of the data of a secret. Nothing else of it is
// sent to sidecars.
func Credentials(data map[string][]byte) map[string][]byte {
	data = maps.Clone(data)
	maps.DeleteFunc(data, func(key string, _ []byte) bool {
		switch key {
		case SecretUsername, SecretPassword, SecretSentinelUsername, SecretSentinelPassword,
			SecretAuthority, SecretCertificate, SecretPrivateKey:
			return false
		}
		return true
	})
	return data
}

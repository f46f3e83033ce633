package devcluster

import (
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a file that reaches the API server with a token.
func (c *controlPlane) writeKubeconfig(file, token string) error {
	const name = "weir"
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{Server: c.server, CertificateAuthority: c.caFile()}
	config.AuthInfos[name] = &api.AuthInfo{Token: token}
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, file)
}

package remote

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// restConfig turns the content of a kubeconfig Secret into a client
// configuration. Commands, files and plugins are refused.
func restConfig(kubeconfig []byte) (*rest.Config, error) {
	parsed, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be read: %w", err)
	}
	if err := embedded(parsed); err != nil {
		return nil, err
	}
	cfg, err := clientcmd.NewDefaultClientConfig(*parsed, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig is incomplete: %w", err)
	}
	return cfg, nil
}

// embedded checks that a kubeconfig names nothing outside of itself.
func embedded(cfg *clientcmdapi.Config) error {
	for _, u := range cfg.AuthInfos {
		if u.Exec != nil || u.AuthProvider != nil {
			return errors.New("the kubeconfig asks to run a command or plugin for its credentials; embed a token or a client certificate instead")
		}
		if u.ClientCertificate != "" || u.ClientKey != "" || u.TokenFile != "" {
			return errors.New("the kubeconfig names files for its credentials; embed their content instead (client-certificate-data, client-key-data, token)")
		}
	}
	for _, c := range cfg.Clusters {
		if c.CertificateAuthority != "" {
			return errors.New("the kubeconfig names a file for the certificate authority; embed its content instead (certificate-authority-data)")
		}
	}
	return nil
}

package render

import (
	"path"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
)

const defaultCertificatesDir = "/etc/kubernetes/pki"

// Permissions of the certificate and key files.
const (
	certificateMode = "0640"
	keyMode         = "0600"
)

// pairPaths are the files of a certificate and its key. An empty path is not written.
type pairPaths struct{ cert, key string }

// pathsOf returns the file paths that kubeadm expects for the purpose. kubeadm uses existing files instead of
// generating its own.
func pathsOf(p secrets.Purpose, config bootstrapv1.ClusterConfiguration) pairPaths {
	dir := config.CertificatesDir
	if dir == "" {
		dir = defaultCertificatesDir
	}
	external := config.Etcd.External
	switch p {
	case secrets.CA:
		return pairPaths{path.Join(dir, "ca.crt"), path.Join(dir, "ca.key")}
	case secrets.Proxy:
		return pairPaths{path.Join(dir, "front-proxy-ca.crt"), path.Join(dir, "front-proxy-ca.key")}
	case secrets.SA:
		return pairPaths{path.Join(dir, "sa.pub"), path.Join(dir, "sa.key")}
	case secrets.Etcd:
		if external.IsDefined() {
			return pairPaths{cert: external.CAFile}
		}
		return pairPaths{path.Join(dir, "etcd", "ca.crt"), path.Join(dir, "etcd", "ca.key")}
	case secrets.EtcdClient:
		return pairPaths{external.CertFile, external.KeyFile}
	}
	return pairPaths{}
}

// CertificateFiles returns the certificate and key files that a control plane machine needs, in the order of
// [secrets.Required]. The KubeadmConfig controller passes them to [Init] and [JoinControlPlane] in [Input]. Both are
// parsed and encoded again, so that any other data in a Secret is dropped. If a key is stored elsewhere, only the
// certificate is written. Errors are Invalid faults.
func CertificateFiles(config bootstrapv1.ClusterConfiguration, found secrets.Secrets) ([]File, error) {
	var out []File
	for _, r := range secrets.Required(config) {
		secret := found[r.Purpose]
		if secret == nil {
			return nil, invalid("the Secret for %s of the control plane does not exist", r.Purpose)
		}
		cert, key, err := secrets.Content(r.Purpose, secret)
		if err != nil {
			return nil, invalid("Secret %s cannot be used", secret.Name).From(err)
		}
		paths := pathsOf(r.Purpose, config)
		if paths.cert != "" {
			out = append(out, File{Path: paths.cert, Owner: ownFileOwner, Permissions: certificateMode, Content: cert})
		}
		if paths.key != "" && len(key) > 0 {
			out = append(out, File{Path: paths.key, Owner: ownFileOwner, Permissions: keyMode, Content: key})
		}
	}
	return out, nil
}
